"""AVERAGE_POOL_2D and MAX_POOL_2D by vectors: as many channels as lanes of a run at a time."""

from __future__ import annotations

from microtir.config import Feature
from microtir.dtype import DType
from microtir.kernels.arm_mve.copying import copy, fill
from microtir.kernels.common.pool_kernels import Assembly, PoolKernels

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
