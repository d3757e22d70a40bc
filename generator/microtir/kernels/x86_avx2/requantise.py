"""Requantisation by one 64-bit product, one sum and one shift; equal to TFLite's double rounding.

TFLite rounds twice: high = floor((a * m + 2^30) / 2^31), then high / 2^e to nearest, ties away
from zero.  For a sum that is not negative the second step is floor((high + 2^(e-1)) / 2^e), and
floors of floors are one floor: floor((a * m + 2^30 + 2^(30+e)) / 2^(31+e)).  A negative sum has 1
subtracted from `high`, that is 2^31 from the numerator; where the clamp begins at the zero point
(any fused ReLU) that is left out, since negative sums then give the zero point either way.  The
output's zero point joins the numerator as zero_point * 2^(31+e).

So the result is bits 31+e and up of a 64-bit number: the upper word, shifted by e-1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.dtype import DType
from microtir.kernels.common.statements import let, store
from microtir.operators.common.fixed_point import Ints
from microtir.operators.common.linear import LinearParams
from microtir.operators.common.multiplier import QuantizedMultiplier
from microtir.tir import intrinsics, ir

_INT32_LIMIT = 1 << 31
_INT64_LIMIT = 1 << 63
_UPPER = 32  # bits below the upper word


@dataclass(frozen=True, slots=True)
class Rescaling:
    """Numbers of requantisation that a layer's channels share; part of a kernel's identity.

    `corrects_ties` says that results below the zero point are possible. Results are clamped to
    [low, high], which is within int8.
    """

    corrects_ties: bool
    low: int
    high: int

    @property
    def name(self) -> str:
        clamp = "" if (self.low, self.high) == (-128, 127) else f"_{self.low}_{self.high}"
        return f"{'linear' if self.corrects_ties else 'relu'}{clamp}".replace("-", "m")

    def values(self) -> dict[str, str]:
        return {
            "corrects_ties": str(int(self.corrects_ties)),
            "low": str(self.low),
            "high": str(self.high),
        }

    def store(
        self, y: ir.Buffer, place: te.ExprLike, total: te.Expr,
        factor: tuple[te.Expr, te.Expr, te.Expr],
    ) -> ir.Stmt:  # fmt: skip
        """Store the result of a sum, bias included.

        Args:
            y: the output.
            place: in it.
            total: the sum.
            factor: its channel's multiplier, rounding and shift of the upper word.
        """
        multiplier, rounding, shift = factor
        product = te.cast(DType.INT64, total) * te.cast(DType.INT64, multiplier)

        def stored(upper: te.Expr) -> ir.Stmt:
            return store(y, (place,), te.cast(DType.INT8, te.clamp(upper, self.low, self.high)))

        def shifted(numerator: te.Expr) -> ir.Stmt:
            return let("value", te.cast(DType.INT32, numerator >> _UPPER) >> shift, stored)

        if not self.corrects_ties:
            return let("numerator", product + rounding, shifted)

        def corrected(product: te.Expr) -> ir.Stmt:
            nothing = te.as_expr(0, DType.INT64)
            below = te.select(product < nothing, te.as_expr(_INT32_LIMIT, DType.INT64), nothing)
            return let("numerator", product + rounding - below, shifted)

        return let("product", product, corrected)


@dataclass(frozen=True, slots=True, eq=False)
class Requantisation:
    """Constants of the channels of a layer: int32, but for `rounding`, which is int64."""

    rescaling: Rescaling
    bias: npt.NDArray[np.int32]
    multiplier: npt.NDArray[np.int32]
    shift: npt.NDArray[np.int32]
    rounding: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Channel:
    """Constants of one channel; `shift` is that of the upper word."""

    bias: int
    multiplier: int
    shift: int
    rounding: int


@dataclass(frozen=True, slots=True)
class Output:
    """Zero point and range of the stored values of a layer."""

    zero_point: int
    low: int
    high: int

    @property
    def rescaling(self) -> Rescaling:
        """Return what the channels share."""
        return Rescaling(self.low < self.zero_point, self.low, self.high)

    def channel(self, factor: QuantizedMultiplier, bias: int, magnitude: int) -> Channel | None:
        """Return a channel's constants, if they fit, for sums of products up to `magnitude`."""
        exponent = -factor.shift
        largest = abs(bias) + magnitude
        if largest >= _INT32_LIMIT or exponent < 0:
            return None
        constant = self._stored(bias - magnitude, factor)
        if constant == self._stored(bias + magnitude, factor):
            # Rescaling is monotonic: no input changes the result. Such channels have huge biases
            # or shifts, which the words below would not hold.
            return Channel(0, 0, 0, constant << _UPPER)
        rounding = (1 << 30) + ((1 << exponent) << 30) + (self.zero_point << 31 + exponent)
        bound = largest * factor.multiplier + abs(rounding) + _INT32_LIMIT
        if exponent == 0 or bound >= _INT64_LIMIT:
            return None
        return Channel(bias, factor.multiplier, exponent - 1, rounding)

    def _stored(self, total: int, factor: QuantizedMultiplier) -> int:
        """Return TFLite's result for a sum, bias included."""
        scaled = intrinsics.multiply_by_quantized_multiplier(total, *factor) + self.zero_point
        return max(self.low, min(self.high, scaled))


def requantisation(params: LinearParams, bias: Ints, magnitude: Ints) -> Requantisation | None:
    """Return the constants of a layer; None if one of its channels does not fit the sequence.

    Args:
        params: of the layer; its input zero point is folded into the bias.
        bias: per output channel.
        magnitude: largest magnitude of the sum of products per channel, without the bias.
    """
    output = Output(params.output_zero_point, params.activation_min, params.activation_max)
    factors = params.multipliers * (len(bias) // len(params.multipliers))
    rows = [
        output.channel(factor, int(b), int(m))
        for factor, b, m in zip(factors, bias, magnitude, strict=True)
    ]
    present = [row for row in rows if row is not None]
    if len(present) < len(rows):
        return None
    return Requantisation(
        output.rescaling,
        np.array([row.bias for row in present], np.int32),
        np.array([row.multiplier for row in present], np.int32),
        np.array([row.shift for row in present], np.int32),
        np.array([row.rounding for row in present], np.int64),
    )
