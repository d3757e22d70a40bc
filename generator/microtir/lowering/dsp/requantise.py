"""Requantisation in the fewest instructions that give TFLite's result for every accumulator.

TFLite rounds twice: high = round(a * m / 2^31), ties up, then high / 2^e, ties away from zero.
SMMULR of the doubled accumulator is the first step.  The second is an arithmetic shift of
high + 2^(e-1), which rounds ties up: right for positive values, and for negative ones after
subtracting 1 (`high + (high >> 31)`).  Where the clamp begins at the zero point (any fused ReLU)
the correction is left out: a negative `high` gives a rounded value of at most 0 with or without
it, and the clamp makes the zero point of both.

The output's zero point joins the rounding constant as zero_point * 2^e, and SMMLAR adds that to
the product in the same instruction.  So one channel is four words: twice the bias, multiplier,
rounding, shift.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.graph.quantization import LinearParams, QuantizedMultiplier
from microtir.lowering.dsp.code import load
from microtir.tir import ir
from microtir.tir.dtype import DType

Ints = npt.NDArray[np.int64]

WORDS = 4
_BIAS, _MULTIPLIER, _ROUNDING, _SHIFT = range(WORDS)
_INT32_LIMIT = 1 << 31


@dataclass(frozen=True, slots=True)
class Rescaling:
    """The sequence that all channels of a layer use; part of the identity of a kernel.

    `shift` is what all channels shift by, if they agree and it is not 0; otherwise the shift of
    each channel is read.  Results are clamped to [low, high], which is within int8.
    """

    corrects_ties: bool
    shift: int | None
    low: int
    high: int

    @property
    def instructions(self) -> int:
        """Per value, without the store."""
        clamps = (self.low > DType.INT8.min) + (self.high < DType.INT8.max)
        return 3 + 2 * self.corrects_ties + (self.shift is None) + 3 * clamps

    @property
    def name(self) -> str:
        """Distinguishes kernels."""
        shift = "" if self.shift is None else f"_shift{self.shift}"
        clamp = "" if (self.low, self.high) == (-128, 127) else "_clamped"
        return f"{'linear' if self.corrects_ties else 'relu'}{shift}{clamp}"

    def values(self) -> Mapping[str, str | bool]:
        """What the assembly templates are given."""
        return {
            "corrects_ties": self.corrects_ties,
            "shift": "" if self.shift is None else str(self.shift),
            "low": "" if self.low == DType.INT8.min else str(self.low),
            "high": "" if self.high == DType.INT8.max else str(self.high),
        }

    def apply(self, doubled: te.Expr, constants: ir.Buffer, channel: te.ExprLike) -> te.Expr:
        """The stored value of twice an accumulator (bias excluded), as the assembly computes it."""

        def word(number: int) -> te.Expr:
            return load(constants, channel, number)

        biased = doubled + word(_BIAS)
        return self.rescale(biased, word(_MULTIPLIER), word(_ROUNDING), word(_SHIFT))

    def rescale(
        self, doubled: te.Expr, multiplier: te.Expr, rounding: te.Expr, shift: te.Expr
    ) -> te.Expr:
        """The stored value of twice a number, with the given constants of its channel."""
        product = te.cast(DType.INT64, doubled) * te.cast(DType.INT64, multiplier)
        high = te.cast(DType.INT32, (product + _INT32_LIMIT) >> 32)
        if self.corrects_ties:
            high = high + (high >> 31)
        by = shift if self.shift is None else te.as_expr(self.shift, DType.INT32)
        return te.cast(DType.INT8, te.clamp((high + rounding) >> by, self.low, self.high))


@dataclass(frozen=True, slots=True, eq=False)
class Requantisation:
    """The sequence of a layer and its constants, (channels, 4) int32."""

    rescaling: Rescaling
    constants: npt.NDArray[np.int32]


def requantisation(params: LinearParams, bias: Ints, magnitude: Ints) -> Requantisation | None:
    """The constants of a layer; None if one of its channels does not fit the sequence.

    Args:
        params: of the layer; its zero points are folded here and into the bias.
        bias: per output channel, with the input's zero point folded.
        magnitude: largest magnitude of the sum of products per channel, without the bias.
    """
    low, zero_point = params.activation_min, params.output_zero_point
    corrects_ties = low < zero_point
    channels = [
        _channel(factor.multiplier, -factor.shift, int(abs(b)) + int(m), zero_point, corrects_ties)
        for factor, b, m in zip(
            params.multipliers * (len(bias) // len(params.multipliers)),
            bias,
            magnitude,
            strict=True,
        )
    ]
    found = [channel for channel in channels if channel is not None]
    if len(found) < len(channels):
        return None
    shifts = {shift for _, _, shift in found}
    shared = shifts.pop() if len(shifts) == 1 else None
    rescaling = Rescaling(corrects_ties, shared or None, low, params.activation_max)
    rows = [[2 * int(b), m, r, s] for b, (m, r, s) in zip(bias, found, strict=True)]
    return Requantisation(rescaling, np.array(rows, np.int64).astype(np.int32))


def rescaling_of(
    factor: QuantizedMultiplier, largest: int, zero_point: int, low: int, high: int
) -> tuple[Rescaling, tuple[int, int, int]] | None:
    """Sequence of a single factor and its multiplier, rounding, shift; None if it does not fit.

    Args:
        factor: of numbers whose magnitude is at most `largest`.
        largest: below 2^30.
        zero_point: of the output.
        low: lowest stored value.
        high: highest stored value.
    """
    corrects_ties = low < zero_point
    words = _channel(factor.multiplier, -factor.shift, largest, zero_point, corrects_ties)
    if words is None:
        return None
    return Rescaling(corrects_ties, words[2] or None, low, high), words


def _channel(
    multiplier: int, exponent: int, largest: int, zero_point: int, corrects_ties: bool
) -> tuple[int, int, int] | None:
    """Multiplier, rounding and shift of a channel whose accumulator is at most `largest`."""
    if exponent < 0 or 2 * largest >= _INT32_LIMIT:
        return None
    high = (largest * multiplier + (1 << 30)) >> 31
    if multiplier == 0 or (exponent > 0 and high < 1 << (exponent - 1)):
        # Every result is the zero point; a large exponent would not fit the rounding constant.
        return 0, 2 * zero_point + 1, 1
    half = (1 << exponent) >> 1
    rounding = (zero_point << exponent) + half
    if (exponent == 0 and corrects_ties) or abs(rounding) + high + 1 >= _INT32_LIMIT:
        return None
    return multiplier, rounding, exponent
