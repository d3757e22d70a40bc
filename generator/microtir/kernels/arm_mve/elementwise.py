"""Elementwise operators by vectors of sixteen bytes; tables by gathered loads."""

from __future__ import annotations

from collections.abc import Mapping

from microtir.config import Feature
from microtir.dtype import DType
from microtir.kernels.arm_mve.linear import lanes_of
from microtir.kernels.arm_mve.requantise import LANES
from microtir.kernels.common.elementwise import Arithmetic, Elementwise, Run, form_of


class ElementwiseVectors(Elementwise):
    """Lanes of one or two bytes, the last ones of which are masked."""

    name = "lanes_s8_1x16_mve"
    needs = Feature.MVE
    template = "kernels/mve/lanes.j2"
    stack_bytes = 8
    types = (DType.INT8, DType.INT16, DType.UINT8)

    def values(self, run: Run) -> Mapping[str, object]:
        return {
            "lane": run.lane.value,
            "bits": str(run.dtype.bits),
            "width": "h" if run.dtype is DType.INT16 else "b",
            "repeats": run.repeats,
            "count": str(run.count),
            "output": "r1" if len(run.repeats) == 1 else "r2",
        }

    def turns(self, run: Run) -> Mapping[str, int]:
        return {"letp lr, 1b": -(-run.count // lanes_of(run.dtype))}


class ArithmeticVectors(Arithmetic):
    """Lanes of 32 bits, the last ones of which are masked."""

    name = "arithmetic_s8_1x4_mve"
    needs = Feature.MVE
    is_for_least_ram = True  # a formula takes some four times as many instructions
    cycles = 176
    template = "kernels/mve/arithmetic.j2"
    stack_bytes = 96

    def values(self, run: Run) -> Mapping[str, object]:
        return {**form_of(run).values(run.repeats), "count": str(run.count)}

    def turns(self, run: Run) -> Mapping[str, int]:
        return {"letp lr, 1b": -(-run.count // LANES)}
