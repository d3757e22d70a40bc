"""AVERAGE_POOL_2D and MAX_POOL_2D by words: four channels of a run of pixels at a time."""

from __future__ import annotations

from collections.abc import Mapping

from microtir.config import Feature
from microtir.dtype import DType
from microtir.kernels.arm_dsp.copying import copy, fill
from microtir.kernels.common.pool_kernels import Assembly, PoolKernels
from microtir.kernels.common.pool_windows import FARTHEST, PoolWindows, offsets_of
from microtir.kernels.common.runs import Taps

_WORD = 4  # channels
_RUNS = {DType.INT16: ("kernels/pool_add.j2", 28), DType.INT8: ("kernels/pool_max.j2", 20)}


class _Words(PoolKernels):
    """Costs are from counts of the emulated Cortex-M4."""

    needs = Feature.DSP
    cycles = 139
    printed = 8
    longest_step = 255
    average_template, average_stack = "kernels/pool_average.j2", 20
    code_bytes = 200, 120

    def run_assembly(self, pixels: int, channels: int, dtype: DType) -> Assembly:
        words, rest = divmod(channels, _WORD)
        template, stack_bytes = _RUNS[dtype]
        values = {
            **self.run_values(pixels, channels),
            "collected_bytes": str(words * _WORD * dtype.bytes) if words else "",
            "rest": str(rest) if rest else "",
        }
        return Assembly(template, values, stack_bytes)

    def run_cost(self, channels: int, dtype: DType) -> tuple[int, int]:
        words, rest = divmod(channels, _WORD)
        word, single = (10, 2) if dtype is DType.INT16 else (6, 4)
        return words * word + rest * 6, 3 * words + single * rest

    def pixel_cost(self, channels: int) -> int:
        return channels // 4 + 10

    def finish_cost(self, channels: int, dtype: DType) -> int:
        return channels * 11 if dtype is DType.INT16 else channels // 2


WORDS = _Words(copy, fill)


class PoolWords(PoolWindows):
    """A word of channels at a time: four of int8, or two of int16."""

    name = "pool_s8_1x4_dsp_windows"
    types = (DType.INT8, DType.INT16, DType.UINT8)
    needs = Feature.DSP
    cycles = 139
    template = "kernels/pool_windows.j2"
    stack_bytes = 24, 36

    def values(
        self, taps: Taps, pixels: int, channels: int, dtype: DType, *, averages: bool
    ) -> Mapping[str, object]:
        size = dtype.bytes
        turns, rest = divmod(channels, _WORD // size)
        offsets = [str(offset * size) for offset in offsets_of(taps)]
        return {
            "pixels": str(pixels),
            "offsets": offsets,
            "turns": str(turns) if turns else "",
            "back": str(_WORD - rest * size) if turns and rest else "",
            "rest": str(rest) if not turns else "",
            "step": str(taps.pixel_step * size),
            "is_far": taps.pixel_step * size > FARTHEST,
            "channels": str(channels * size),
            "averages": averages,
            "is_long": dtype is DType.INT16,
            "sign": "u" if dtype is DType.UINT8 else "s",
            "lanes": str(dtype.bits),
            "width": "h" if dtype is DType.INT16 else "b",
            "element": str(size),
            "taps": ["0", *offsets],
            **(_division(taps.count, dtype) if averages else {}),
        }

    def turns(
        self, pixels: int, channels: int, dtype: DType, *, averages: bool
    ) -> Mapping[str, int]:
        return {"bne 1b": pixels, "bne 2b": pixels * (channels // (_WORD // dtype.bytes))}


def _division(count: int, dtype: DType) -> dict[str, object]:
    """Return the constants of averages: sums begin so large that none is negative."""
    first = -dtype.min * count + count // 2
    first *= 1 if dtype is DType.INT16 else 0x10001  # two sums of bytes are a word
    reciprocal = -(-(1 << 32) // count)
    return {
        "first_low": str(first & 0xFFFF),
        "first_high": str(first >> 16),
        "reciprocal_low": str(reciprocal & 0xFFFF),
        "reciprocal_high": str(reciprocal >> 16),
        "has_ties": count % 2 == 0 and dtype is not DType.UINT8,
    }
