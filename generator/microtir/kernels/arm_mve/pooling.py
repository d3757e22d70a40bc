"""AVERAGE_POOL_2D and MAX_POOL_2D by vectors: as many channels as lanes of a run at a time."""

from __future__ import annotations

from collections.abc import Mapping

from microtir.config import Feature
from microtir.dtype import DType
from microtir.kernels.arm_mve.copying import copy, fill
from microtir.kernels.arm_mve.linear import BYTES, lanes_of
from microtir.kernels.common.pool_kernels import Assembly, PoolKernels
from microtir.kernels.common.pool_windows import FARTHEST, PoolWindows, offsets_of
from microtir.kernels.common.runs import Taps

_OPERATIONS = {
    DType.INT16: {
        "width": "16", "lanes": "8", "load": "vldrb.s16", "load_sum": "vldrh.u16",
        "store_sum": "vstrh.16", "operation": "vadd.i16",
    },
    DType.INT8: {
        "width": "8", "lanes": "16", "load": "vldrb.u8", "load_sum": "vldrb.u8",
        "store_sum": "vstrb.8", "operation": "vmax.s8",
    },
}  # fmt: skip


class _Vectors(PoolKernels):
    """Costs are from counts of the emulated Cortex-M55."""

    needs = Feature.MVE
    cycles = 123
    printed = 16
    longest_step = 127  # of bytes
    average_template, average_stack = "kernels/mve/pool_average.j2", 16
    code_bytes = 120, 80

    def run_assembly(self, pixels: int, channels: int, dtype: DType) -> Assembly:
        values = {**self.run_values(pixels, channels), **_OPERATIONS[dtype]}
        return Assembly("kernels/mve/pool_run.j2", values, 8)

    def run_cost(self, channels: int, dtype: DType) -> tuple[int, int]:
        vectors = -(-channels // (16 // dtype.bytes))
        return vectors * 5, vectors * 2

    def pixel_cost(self, _channels: int) -> int:
        return 40

    def finish_cost(self, channels: int, dtype: DType) -> int:
        return channels * 9 // 4 if dtype is DType.INT16 else channels // 8


VECTORS = _Vectors(copy, fill)

_INDEXED = 127  # elements: the farthest that a load moves its pointer
_WIDTHS = {1: "b", 2: "h"}


class PoolVectors(PoolWindows):
    """A vector of channels at a time, or half of one for averages, whose sums are twice as wide."""

    name = "pool_s8_1x16_mve_windows"
    types = (DType.INT8, DType.INT16, DType.UINT8)
    needs = Feature.MVE
    cycles = 123
    template = "kernels/mve/pool_windows.j2"
    stack_bytes = 20, 20
    around_row = 5

    def values(
        self, taps: Taps, pixels: int, channels: int, dtype: DType, *, averages: bool
    ) -> Mapping[str, object]:
        size, lanes = dtype.bytes, _lanes(dtype, averages=averages)
        is_one, bits = channels <= lanes, BYTES * 8 // lanes
        places = [0, *offsets_of(taps)]
        gaps = [
            after - place for place, after in zip(places, [*places[1:], places[-1]], strict=True)
        ]
        sign, width = "u" if dtype is DType.UINT8 else "s", _WIDTHS[size]
        combine = f"vadd.i{bits}" if averages else f"vmax.{sign}{bits}"
        loads = []
        for number, gap in enumerate(gaps):
            register, is_near = "q1" if number else "q0", gap <= _INDEXED
            behind = f", #{gap * size}" if gap and is_near else ""
            loads.append(f"vldr{width}.{sign if averages else 'u'}{bits} {register}, [r3]{behind}")
            loads += [] if is_near else [f"addw r3, r3, #{gap * size}"]
            loads += [f"{combine} q0, q0, q1"] if number else []
        stored = f"[r1], #{channels * size}" if is_one else f"[r6], #{lanes * size}"
        return {
            "pixels": str(pixels),
            "channels": str(channels),
            "row_bytes": str(channels * size),
            "step": str(taps.pixel_step * size),
            "bits": str(bits),
            "block_bytes": str(lanes * size),
            "is_one": is_one,
            "is_far": taps.pixel_step * size > FARTHEST,
            "store": f"vstr{width}.{bits} q0, {stored}",
            "loads": loads,
            "has_signs": dtype is not DType.UINT8,
            "sign_bit": str(bits - 1),
            **_division(taps.count if averages else 1, bits),
        }

    def turns(
        self, pixels: int, channels: int, dtype: DType, *, averages: bool
    ) -> Mapping[str, int]:
        vectors = -(-channels // _lanes(dtype, averages=averages))
        return {"bne 1b": pixels, "letp lr, 2b": pixels * vectors}


def _lanes(dtype: DType, *, averages: bool) -> int:
    return lanes_of(dtype) // (2 if averages else 1)


def _division(count: int, bits: int) -> dict[str, object]:
    """Return the constants of averages: the upper half of a product, shifted, is the quotient.

    An element has half as many bits as its sums.  There are at most 128 taps, so that the
    reciprocal is exact for all sums.
    """
    shift = count.bit_length() - 1
    reciprocal = 0 if count == 1 << shift else -(-(1 << bits + shift) // count)
    return {
        "half": str(count // 2) if count > 1 else "",
        "reciprocal": str(reciprocal & 0xFFFF) if reciprocal else "",
        "reciprocal_high": str(reciprocal >> 16) if reciprocal >> 16 else "",
        "shift": str(shift) if shift else "",
    }
