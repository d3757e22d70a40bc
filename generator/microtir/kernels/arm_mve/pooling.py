"""AVERAGE_POOL_2D and MAX_POOL_2D by vectors: as many channels as lanes of a run at a time."""

from __future__ import annotations

from collections.abc import Mapping

from microtir.config import Feature
from microtir.dtype import DType
from microtir.kernels.arm_mve.copying import copy, fill
from microtir.kernels.arm_mve.linear import lanes_of
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

_INDEXED = 127  # the farthest that a load of bytes moves its pointer


class PoolVectors(PoolWindows):
    """Sixteen channels at a time, or eight of averages, whose sums have 16 bits."""

    name = "pool_s8_1x16_mve_windows"
    types = (DType.INT8,)
    needs = Feature.MVE
    cycles = 123
    template = "kernels/mve/pool_windows.j2"
    stack_bytes = 20, 20
    around_row = 5

    def values(
        self, taps: Taps, pixels: int, channels: int, _dtype: DType, *, averages: bool
    ) -> Mapping[str, object]:
        lanes = lanes_of(_lanes_type(averages=averages))
        is_one = channels <= lanes
        places = [0, *offsets_of(taps)]
        gaps = [
            after - place for place, after in zip(places, [*places[1:], places[-1]], strict=True)
        ]
        load, combine = ("vldrb.s16", "vadd.i16") if averages else ("vldrb.u8", "vmax.s8")
        loads = []
        for number, gap in enumerate(gaps):
            register, is_near = "q1" if number else "q0", gap <= _INDEXED
            behind = f", #{gap}" if gap and is_near else ""
            loads.append(f"{load} {register}, [r3]{behind}")
            loads += [] if is_near else [f"addw r3, r3, #{gap}"]
            loads += [f"{combine} q0, q0, q1"] if number else []
        return {
            "pixels": str(pixels),
            "channels": str(channels),
            "step": str(taps.pixel_step),
            "bits": str(_lanes_type(averages=averages).bits),
            "lanes": str(lanes),
            "is_one": is_one,
            "is_far": taps.pixel_step > FARTHEST,
            "stored": f"[r1], #{channels}" if is_one else f"[r6], #{lanes}",
            "loads": loads,
            "averages": averages,
            **_division(taps.count if averages else 1),
        }

    def turns(
        self, pixels: int, channels: int, _dtype: DType, *, averages: bool
    ) -> Mapping[str, int]:
        vectors = -(-channels // lanes_of(_lanes_type(averages=averages)))
        return {"bne 1b": pixels, "letp lr, 2b": pixels * vectors}


def _lanes_type(*, averages: bool) -> DType:
    return DType.INT16 if averages else DType.INT8


def _division(count: int) -> dict[str, object]:
    """Return the constants of averages: the upper half of a product, shifted, is the quotient.

    Magnitudes are at most 128.5 times the count of taps, which is 128 at most: the reciprocal of 16
    bits is exact for all of them.
    """
    shift = count.bit_length() - 1
    is_power = count == 1 << shift
    return {
        "half": str(count // 2) if count > 1 else "",
        "reciprocal": "" if is_power else str(-(-(1 << 16 + shift) // count)),
        "shift": str(shift) if shift else "",
    }
