"""L2_NORMALIZATION of int8: sums of squares by vectors, and the factors of four rows at once."""

from __future__ import annotations

from collections.abc import Mapping

from microtir.config import Feature
from microtir.dtype import DType
from microtir.kernels.arm_mve.linear import BYTES, lanes_of, steps_of
from microtir.kernels.arm_mve.requantise import LANES
from microtir.kernels.common.float_edges import halves
from microtir.kernels.common.normalise import Normalise
from microtir.operators.common import fixed_point
from microtir.operators.normalization.definition import OUTPUT_BITS

_VECTOR = lanes_of(DType.INT16)


class NormaliseVectors(Normalise):
    """Rows of any length, eight outputs at a time."""

    name = "l2norm_s8_1x8_mve"
    needs = Feature.MVE
    cycles = 145
    template = "kernels/mve/normalise.j2"
    stack_bytes = 68

    def turns(self, rows: int, width: int) -> Mapping[str, int]:
        return {
            "bgt 1b": steps_of(rows, LANES), "bne 2b": rows, "bne 5b": rows,
            "letp lr, 3b": rows * steps_of(width), "le lr, 6b": width // _VECTOR * rows,
        }  # fmt: skip

    def values(self, width: int, zero_point: int) -> Mapping[str, object]:
        whole, tail = divmod(width, _VECTOR)
        behind = -width % BYTES
        return {
            "zero_point": str(zero_point) if zero_point else "",
            "start": halves(width * zero_point**2),
            "behind": str(behind) if behind else "",
            "half_three": halves(fixed_point.INVERSE_ROOT_HALF_THREE),
            "output_bits": str(OUTPUT_BITS),
            "whole": str(whole) if whole else "",
            "tail": str(tail) if tail else "",
        }
