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

Without the correction the sequence is one floor of a line over the sums, because floors of floors
are one floor.  What onnxruntime computes in float32, and LiteRT for fully connected layers in
double, is found among these lines, if it is there: twice the bias may be odd, and any rounding
constant will do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.dtype import DType
from microtir.kernels.common.statements import load
from microtir.operators.common.float_rescaling import StoredSums, lines_of, shift_of
from microtir.operators.common.linear import LinearParams
from microtir.operators.common.multiplier import QuantizedMultiplier
from microtir.tir import intrinsics, ir

Ints = npt.NDArray[np.int64]

WORDS = 4
BIAS, MULTIPLIER, ROUNDING, SHIFT = range(WORDS)
_INT32_LIMIT = 1 << 31
_MOST_MOVED = 1 << 15  # of doubled sums
_LARGEST_ROUNDED = 1 << 21  # of products that two sums round
_LEAST_FACTOR = 2.0**-100  # whose half has all bits of a float32


@dataclass(frozen=True, slots=True)
class Rescaling:
    """The sequence that all channels of a layer use; part of the identity of a kernel.

    `shift` is what all channels shift by, if they agree and it is not 0; otherwise the shift of
    each channel is read.  Results are clamped to [low, high], which is within their type.

    Where it is `in_float`, half the multiplier is a float32, by its bits, the rounding constant is
    the zero point, and there is no shift: doubled sums are converted, multiplied, and rounded to
    the nearest integer, of two the even one.
    """

    corrects_ties: bool
    shift: int | None
    low: int
    high: int
    in_float: bool = False
    dtype: DType = DType.INT8

    @property
    def instructions(self) -> int:
        """Return the instructions of one value, without the store."""
        clamps = (self.low > self.dtype.min) + (self.high < self.dtype.max)
        if self.in_float:
            return 9 + 3 * clamps
        return 3 + 2 * self.corrects_ties + (self.shift is None) + 3 * clamps

    @property
    def name(self) -> str:
        shift = "" if self.shift is None else f"_shift{self.shift}"
        clamp = "" if (self.low, self.high) == (self.dtype.min, self.dtype.max) else "_clamped"
        if self.in_float:
            return f"float{clamp}"
        return f"{'linear' if self.corrects_ties else 'relu'}{shift}{clamp}"

    def values(self) -> Mapping[str, str | bool]:
        return {
            "in_float": self.in_float,
            "corrects_ties": self.corrects_ties,
            "bits": str(self.dtype.bits),
            "shift": "" if self.shift is None else str(self.shift),
            "low": "" if self.low == self.dtype.min else str(self.low),
            "high": "" if self.high == self.dtype.max else str(self.high),
        }

    def apply(self, doubled: te.Expr, constants: ir.Buffer, channel: te.ExprLike) -> te.Expr:
        """Return the stored value of twice an accumulator without bias, as the assembly does."""

        def word(number: int) -> te.Expr:
            return load(constants, channel, number)

        biased = doubled + word(BIAS)
        return self.rescale(biased, word(MULTIPLIER), word(ROUNDING), word(SHIFT))

    def rescale(
        self, doubled: te.Expr, multiplier: te.Expr, rounding: te.Expr, shift: te.Expr
    ) -> te.Expr:
        """Return the stored value of twice a number, with the given constants of its channel."""
        if self.in_float:
            real = te.no_fp_contract(te.cast(DType.FLOAT32, doubled) * te.float_of_bits(multiplier))
            whole = te.cast(DType.INT32, te.round_small(real)) + rounding
            return te.cast(self.dtype, te.clamp(whole, self.low, self.high))
        product = te.cast(DType.INT64, doubled) * te.cast(DType.INT64, multiplier)
        high = te.cast(DType.INT32, (product + _INT32_LIMIT) >> 32)
        if self.corrects_ties:
            high = high + (high >> 31)
        by = shift if self.shift is None else te.as_expr(self.shift, DType.INT32)
        return te.cast(self.dtype, te.clamp((high + rounding) >> by, self.low, self.high))


@dataclass(frozen=True, slots=True, eq=False)
class Requantisation:
    """The sequence of a layer and its constants, (channels, 4) int32."""

    rescaling: Rescaling
    constants: npt.NDArray[np.int32]


def requantisation(params: LinearParams, bias: Ints, magnitude: Ints) -> Requantisation | None:
    """Return the constants of a layer; None if one of its channels does not fit the sequence.

    Args:
        params: of the layer; its zero points are folded here and into the bias.
        bias: per output channel, with the input's zero point folded.
        magnitude: largest magnitude of the sum of products per channel, without the bias.
    """
    if params.factors:
        return _requantisation_in_float(params, bias, magnitude)
    factors = params.multipliers * (len(bias) // len(params.multipliers))
    clamp = _Clamp(params.output_zero_point, params.activation_min, params.activation_max)
    rows = [
        _channel(factor, int(b), int(m), clamp)
        for factor, b, m in zip(factors, bias, magnitude, strict=True)
    ]
    present = [row for row in rows if row is not None]
    if len(present) < len(rows):
        return None
    shifts = {row[SHIFT] for row in present}
    shared = shifts.pop() if len(shifts) == 1 else None
    return Requantisation(clamp.rescaling(shared), np.array(present, np.int64).astype(np.int32))


def _requantisation_in_float(
    params: LinearParams, bias: Ints, magnitude: Ints
) -> Requantisation | None:
    """Return the constants of a layer that is rescaled by floats: integers if there are some."""
    factors = params.factors * (len(bias) // len(params.factors))
    limits = params.output_zero_point, params.activation_min, params.activation_max
    channels = [
        (StoredSums(factor, b - m, b + m, *limits, params.rescaling), b)
        for factor, b, m in zip(factors, bias.tolist(), magnitude.tolist(), strict=True)
    ]
    # One shift for all channels saves an instruction of each output.
    shared = min(shift_of(factor) for factor in factors)
    rows = [_line(*channel, shared) or _line(*channel) for channel in channels]
    present = [row for row in rows if row is not None]
    if len(present) < len(rows):
        return _by_floats(params, channels)
    shifts = {row[SHIFT] for row in present}
    shift = shared or None if shifts == {shared} else None
    rescaling = Rescaling(False, shift, params.activation_min, params.activation_max)
    return Requantisation(rescaling, np.array(present, np.int64).astype(np.int32))


def _by_floats(
    params: LinearParams, channels: list[tuple[StoredSums, int]]
) -> Requantisation | None:
    """Return the constants by which floats rescale; None if sums or results are too large.

    Doubles do not: no core of a microcontroller has instructions for them that would be worth it.
    """
    if params.in_double:
        return None
    words = np.zeros((len(channels), WORDS), np.int32)
    for row, (sums, bias) in zip(words, channels, strict=True):
        largest = max(-sums.lowest, sums.highest)
        is_small = sums.factor * largest < _LARGEST_ROUNDED and sums.factor > _LEAST_FACTOR
        if sums.highest - sums.lowest >= _INT32_LIMIT:
            return None
        if sums.constant is not None:
            row[ROUNDING] = sums.constant
        elif 2 * largest >= _INT32_LIMIT or not is_small:
            return None
        else:
            bits = int(np.float32(sums.factor / 2).view(np.int32))
            row[:] = 2 * bias, bits, params.output_zero_point, 0
    limits = params.activation_min, params.activation_max
    return Requantisation(Rescaling(False, None, *limits, in_float=True), words)


# Every family that could compute a layer asks about its channels.
@lru_cache(maxsize=4096)
def _line(
    sums: StoredSums, bias: int, shift: int | None = None
) -> tuple[int, int, int, int] | None:
    """Return the words of a channel whose sums are rescaled in float32; None if there are none."""
    by = shift_of(sums.factor) if shift is None else shift
    largest = max(-sums.lowest, sums.highest)
    constant = sums.constant
    if by < 0 or sums.highest - sums.lowest >= _INT32_LIMIT:
        return None
    if constant is not None:  # such channels have huge biases
        return 0, 0, constant << by, by
    if 2 * largest + _MOST_MOVED >= _INT32_LIMIT:
        return None
    for line in lines_of(sums, by):
        for most in (_MOST_MOVED >> 6, _MOST_MOVED):
            # Doubled sums are moved until the offset that is left is words, or nearly.
            moved = np.arange(-most, most + 1)
            least = line.first - (1 << 31) - moved * line.multiplier
            roundings = -(-least >> 32)
            is_legal = (roundings << 32) - least < line.end - line.first
            if not is_legal.any():
                continue
            place = int(np.where(is_legal, np.abs(moved), most + 1).argmin())
            rounding, high = int(roundings[place]), 2 * largest * line.multiplier >> 32
            if abs(rounding) + high + most + 2 < _INT32_LIMIT:
                return 2 * bias + int(moved[place]), line.multiplier, rounding, by
    return None


def rescaling_of(
    factor: QuantizedMultiplier, largest: int, zero_point: int, low: int, high: int
) -> tuple[Rescaling, tuple[int, int, int]] | None:
    """Return sequence of a single factor and its multiplier, rounding, shift.

    None if it does not fit.

    Args:
        factor: of numbers whose magnitude is at most `largest`.
        largest: below 2^30.
        zero_point: of the output.
        low: lowest stored value.
        high: highest stored value.
    """
    clamp = _Clamp(zero_point, low, high)
    words = _channel(factor, 0, largest, clamp)
    if words is None:
        return None
    _, multiplier, rounding, shift = words
    return clamp.rescaling(shift), (multiplier, rounding, shift)


@dataclass(frozen=True, slots=True)
class _Clamp:
    """The output's zero point and the range of its stored values."""

    zero_point: int
    low: int
    high: int

    @property
    def corrects_ties(self) -> bool:
        return self.low < self.zero_point

    def rescaling(self, shift: int | None) -> Rescaling:
        return Rescaling(self.corrects_ties, shift or None, self.low, self.high)

    def stored(self, accumulator: int, factor: QuantizedMultiplier) -> int:
        """Return TFLite's result for an accumulator, bias included."""
        scaled = intrinsics.multiply_by_quantized_multiplier(accumulator, *factor)
        return max(self.low, min(self.high, scaled + self.zero_point))


# Every family that could compute a layer asks about its channels.
@lru_cache(maxsize=4096)
def _channel(
    factor: QuantizedMultiplier, bias: int, magnitude: int, clamp: _Clamp
) -> tuple[int, int, int, int] | None:
    """Return the words of a channel whose sum of products is at most `magnitude`."""
    multiplier, exponent = factor.multiplier, -factor.shift
    lowest, highest = bias - magnitude, bias + magnitude
    largest = max(-lowest, highest)
    if exponent < 0 or 2 * magnitude >= _INT32_LIMIT or largest >= _INT32_LIMIT:
        return None
    constant = clamp.stored(lowest, factor)
    if constant == clamp.stored(highest, factor):
        # Rescaling is monotonic: no input changes the result.  Such channels have huge biases or
        # shifts, which the words below would not hold.
        return 0, 0, 2 * constant + 1, 1
    half = (1 << exponent) >> 1
    rounding = (clamp.zero_point << exponent) + half
    high = (largest * multiplier + (1 << 30)) >> 31
    if 2 * largest >= _INT32_LIMIT or abs(rounding) + high + 1 >= _INT32_LIMIT:
        return None
    if exponent == 0 and clamp.corrects_ties:
        return None
    return 2 * bias, multiplier, rounding, exponent
