"""Requantisation of four lanes, with TFLite's result for every accumulator.

VQRDMULH is TFLite's first rounding, ties up.  VRSHL by a negative count is the second, but rounds
ties up where TFLite rounds them away from zero: negative numbers are first lessened by 1 where the
count is not 0, as the sign of `high & -exponent` says.  Where the clamp begins at the zero point
(any fused ReLU) that is left out: a negative number gives the zero point with or without it.

The zero point is added after narrowing to 16 bits, saturating: whatever saturates there is beyond
the range of the output on the same side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.dtype import DType
from microtir.operators.common.linear import LinearParams

Ints = npt.NDArray[np.int64]

LANES = 4  # int32 values of a vector
WORDS = 3
BIAS, MULTIPLIER, SHIFT = range(WORDS)  # the shift is to the left: never positive
_INT32_LIMIT = 1 << 31
_LEAST_SHIFT = -31


@dataclass(frozen=True, slots=True)
class Rescaling:
    """What all channels of a layer have in common; part of the identity of a kernel.

    Results are clamped to [low, high], which is within int8.
    """

    zero_point: int
    low: int
    high: int

    @staticmethod
    def of(params: LinearParams) -> Rescaling:
        return Rescaling(params.output_zero_point, params.activation_min, params.activation_max)

    @property
    def corrects_ties(self) -> bool:
        return self.low < self.zero_point

    @property
    def name(self) -> str:
        """Distinguish kernels."""
        return "_".join(_signed(n) for n in (self.zero_point, self.low, self.high))

    def values(self) -> Mapping[str, str | bool]:
        """Return what the assembly templates are given."""
        return {
            "corrects_ties": self.corrects_ties,
            "zero_point": str(self.zero_point),
            "low": "" if self.low == DType.INT8.min else str(self.low),
            "high": "" if self.high == DType.INT8.max else str(self.high),
        }

    def apply(self, total: te.Expr, multiplier: te.Expr, shift: te.Expr) -> te.Expr:
        """Return the stored value of an accumulator, bias included."""
        high = te.saturating_rounding_doubling_high_mul(total, multiplier)
        scaled = te.rounding_divide_by_pot(high, -shift)
        return te.cast(DType.INT8, te.clamp(scaled + self.zero_point, self.low, self.high))


def _signed(number: int) -> str:
    return str(number) if number >= 0 else f"m{-number}"


def constants_of(params: LinearParams, bias: Ints, magnitude: Ints) -> Ints | None:
    """Return bias, multiplier and shift of the channels, (channels, 3); None if one does not fit.

    Args:
        params: of the layer.
        bias: per output channel, with the input's zero point folded.
        magnitude: largest magnitude of the sum of products per channel, without the bias.
    """
    multipliers, shifts = params.multiplier_arrays(len(bias))
    if (np.abs(bias) + magnitude).max() >= _INT32_LIMIT:
        return None
    if shifts.min() < _LEAST_SHIFT or shifts.max() > 0:
        return None
    return np.stack([bias, multipliers, shifts], axis=1)


def by_lanes(constants: Ints) -> npt.NDArray[np.int32]:
    """Arrange constants (channels, 3) as (groups, 3, 4), with zeros for missing channels."""
    groups = -(-len(constants) // LANES)
    padded = np.zeros((groups * LANES, WORDS), np.int32)
    padded[: len(constants)] = constants
    by_group: npt.NDArray[np.int32] = padded.reshape(groups, LANES, WORDS).transpose(0, 2, 1)
    return by_group
