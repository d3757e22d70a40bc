"""Requantisation of sums that tflite-micro holds in 64 bits, where 32 are enough.

Its result is (sum * m + 2^(14 - shift)) >> (15 - shift), m having 15 bits.  With m in the upper
half of a word, the upper half of a product lacks only bits below those that are rounded, if the
factor is below 1/4.  So one channel is four words, as that of `requantise`: bias, multiplier,
rounding, shift.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.dtype import DType
from microtir.kernels.common.requantise import Ints
from microtir.operators.common.linear import LinearParams
from microtir.operators.common.multiplier import QuantizedMultiplier, reduced


@dataclass(frozen=True, slots=True)
class LongRescaling:
    """The sequence that all channels of a layer use; part of the identity of a kernel.

    Results are clamped to [low, high], which is within int16.
    """

    low: int
    high: int

    @staticmethod
    def of(params: LinearParams) -> LongRescaling:
        """Return the sequence of a layer, whose output has the zero point 0."""
        return LongRescaling(params.activation_min, params.activation_max)

    @property
    def name(self) -> str:
        is_free = (self.low, self.high) == (DType.INT16.min, DType.INT16.max)
        return "long" if is_free else f"long_{self.low}_{self.high}".replace("-", "m")

    def apply(
        self, total: te.Expr, multiplier: te.Expr, rounding: te.Expr, shift: te.Expr
    ) -> te.Expr:
        """Return the stored value of a sum, bias included."""
        product = te.cast(DType.INT64, total) * te.cast(DType.INT64, multiplier)
        high = te.cast(DType.INT32, product >> 32)
        return te.cast(DType.INT16, te.clamp((high + rounding) >> shift, self.low, self.high))


def long_constants(params: LinearParams, bias: Ints) -> npt.NDArray[np.int32] | None:
    """Return the four words of each channel; None if a factor is too large for the sequence.

    Args:
        params: of a layer whose sums are proven to fit 32 bits, the bias included.
        bias: of each channel.
    """
    factors = params.multipliers * (len(bias) // len(params.multipliers))
    rows = [long_words(factor, int(b)) for factor, b in zip(factors, bias, strict=True)]
    present = [row for row in rows if row is not None]
    if len(present) < len(rows):
        return None
    return np.array(present, np.int64).astype(np.int32)


def long_words(factor: QuantizedMultiplier, bias: int) -> tuple[int, int, int, int] | None:
    """Return the four words of a channel; None if its factor is too large."""
    multiplier, shift = reduced(factor)
    if multiplier == 0:
        return bias, 0, 1, 1
    by = -1 - shift
    return (bias, multiplier << 16, 1 << (by - 1), by) if by > 0 else None
