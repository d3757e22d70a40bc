"""Write scalar arithmetic that several formulas share, as tensor expressions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.operators.common import attributes, fixed_point
from microtir.operators.common.formula import FormulaContext
from microtir.operators.common.multiplier import QuantizedMultiplier, reduced
from microtir.tir.ir import Array


def wide(value: te.ExprLike) -> te.Expr:
    """Return a stored integer in the type of the accumulators."""
    return te.cast(DType.INT32, value)


def long(value: te.ExprLike) -> te.Expr:
    """Return an integer as INT64: its sums and products with others of 32 bits fit that."""
    return te.cast(DType.INT64, value)


def wrapped_int32(value: te.Expr) -> te.Expr:
    """Return an INT64 value reduced modulo 2^32, as INT32.

    Reference kernels overflow where they add and multiply in int32, and compiled they wrap; a
    formula computes with `long` what they compute, and wraps the result.  `fixed_point.wrap` says
    the same of numbers.
    """
    half = te.const(1 << 31, DType.INT64)
    return te.cast(DType.INT32, ((value + half) & ((1 << 32) - 1)) - half)


@dataclass(frozen=True, slots=True)
class Accumulator:
    """The type in which a layer adds integers.

    In INT32 where no input makes a sum leave that; otherwise in INT64.  Where tflite-micro adds in
    32 bits, `total` takes the lower half, as the sums of its compiled kernels wrap; where it adds
    in 64 bits, the sum itself counts.
    """

    is_wide: bool
    wraps: bool = True

    @staticmethod
    def of(layer: FormulaContext, wraps: bool = True) -> Accumulator:
        return Accumulator(not layer.sums_fit, wraps)

    @property
    def dtype(self) -> DType:
        return DType.INT64 if self.is_wide else DType.INT32

    def term(self, value: te.ExprLike) -> te.Expr:
        return te.cast(self.dtype, value)

    def total(self, sum_: te.Expr) -> te.Expr:
        """Return a sum as INT32, or as INT64 where it may need that."""
        if not (self.is_wide and self.wraps):
            return sum_
        return te.bind("wrapped", wrapped_int32(sum_))


def summand(layer: FormulaContext, value: te.Expr) -> te.Expr:
    """Return a stored element in the type that sums have."""
    return value if value.dtype.is_float else Accumulator.of(layer).term(value)


def centred(value: te.ExprLike, zero_point: int) -> te.Expr:
    """Return a stored integer minus its zero point, INT32."""
    return wide(value) - zero_point


def requantise(value: te.Expr, factor: QuantizedMultiplier) -> te.Expr:
    """Multiply by a real factor, rounding twice as TFLite's reference kernels do."""
    return te.multiply_by_quantized_multiplier(value, factor.multiplier, factor.shift)


def requantise_wrapping(value: te.Expr, factor: QuantizedMultiplier, bits: int) -> te.Expr:
    """Requantise an INT32 of so many bits, which wraps where its left shift leaves int32."""
    if factor.shift <= 0 or bits + factor.shift <= DType.INT32.bits:
        return requantise(value, factor)
    shifted = te.bind("shifted", wrapped_int32(long(value) * (1 << factor.shift)))
    return requantise(shifted, factor._replace(shift=0))


@dataclass(frozen=True, slots=True)
class ShortRequantisation:
    """A cheaper form of `requantise`, in fewer instructions where values are known to be small.

    The value is given times `scale`, so that the upper word of a product is what counts.
    """

    factor: QuantizedMultiplier
    scale: int

    @staticmethod
    def of(factor: QuantizedMultiplier, largest: int) -> ShortRequantisation | None:
        """Return the way to rescale values of a magnitude of at most `largest`, if there is one."""
        scale = 2 << max(factor.shift, 0)
        if largest * scale > fixed_point.INT32_MAX or factor.multiplier < 0:
            return None
        return ShortRequantisation(factor, scale // 2 if _is_shift(factor) else scale)

    def apply(self, scaled: te.Expr) -> te.Expr:
        """Return a value times the factor, given the value times `scale`."""
        multiplier, shift = self.factor
        if _is_shift(self.factor):
            high = (scaled + 1) >> 1
        else:
            half = te.const(1 << 31, DType.INT64)
            high = te.cast(DType.INT32, (long(scaled) * multiplier + half) >> 32)
        if shift >= 0:
            return high
        # Halves away from zero: a negative value has less to go to the half below it.
        high = te.bind("high", high)
        return (high + (high >> 31) + (1 << (-shift - 1))) >> -shift


def requantise_small(value: te.Expr, factor: QuantizedMultiplier, largest: int) -> te.Expr:
    """Return what `requantise` does to a value of a magnitude of at most `largest`."""
    short = ShortRequantisation.of(factor, largest)
    if short is None:
        return requantise(value, factor)
    return short.apply(value * short.scale)


@dataclass(frozen=True, slots=True)
class RoundedTwice:
    """`requantise`, and an int8 of it, in one product of 64 bits and one shift.

    Values are given times `scale`, so that the upper word of a product is what counts.  It begins
    with what is added behind it.

    Attributes:
        factor: of the values.
        zero_point: of the output.
        is_positive: no value is below 0, so that the last shift can be shorter.
    """

    factor: QuantizedMultiplier
    zero_point: int
    is_positive: bool

    @staticmethod
    def of(
        factor: QuantizedMultiplier, largest: int, zero_point: int, *, is_positive: bool = False
    ) -> RoundedTwice | None:
        """Return the way to rescale values of a magnitude of at most `largest`, if there is one."""
        short = RoundedTwice(factor, zero_point, is_positive and factor.shift < 0)
        added = (abs(zero_point) + RAISED + 1) << max(-factor.shift, 0)
        scaled = largest * short.scale
        is_small = max(scaled, scaled // 2 + added + 1) <= fixed_point.INT32_MAX
        return short if is_small else None

    @property
    def scale(self) -> int:
        return (1 if self.is_positive else 2) << max(self.factor.shift, 0)

    def stored(self, scaled: te.Expr, low: int, high: int) -> te.Expr:
        """Return the int8 that is stored of a value, given times `scale`."""
        return stored_raised(self.raised(scaled), low, high)

    def raised(self, scaled: te.Expr) -> te.Expr:
        """Return the result of a value, given times `scale`, with RAISED added."""
        shift = max(-self.factor.shift, 0)
        half = (1 << shift) >> 1
        start = (((self.zero_point + RAISED << shift) + half) << 32) + (1 << 31)
        if self.is_positive:
            start, shift = start >> 1, shift - 1
        product = long(scaled) * self.factor.multiplier + te.const(start, DType.INT64)
        value = te.cast(DType.INT32, product >> 32)
        if shift and not self.is_positive:
            # Halves away from zero: a negative value has less to go to the half below it.
            value = value + (scaled >> 31)
        return value >> shift


RAISED = 128
"""Number that is added to results of int8 before they are clamped."""


def stored_raised(value: te.Expr, low: int, high: int) -> te.Expr:
    """Store a result as int8, given with RAISED added: the ends are immediates of every CPU."""
    raised = te.clamp(te.bind("scaled", value), low + RAISED, high + RAISED)
    return te.cast(DType.INT8, raised - RAISED)


def _is_shift(factor: QuantizedMultiplier) -> bool:
    """Return whether a factor is a power of two."""
    return factor.multiplier == 1 << 30


def stored(value: te.Expr, zero_point: int, low: int, high: int, dtype: DType) -> te.Expr:
    """Store an INT32 result: add the zero point, clamp, narrow."""
    return te.cast(dtype, te.clamp(te.bind("scaled", value + zero_point), low, high))


class ChannelMultipliers:
    """Requantisation factors of the output channels; what all channels share is an immediate."""

    def __init__(self, factors: tuple[QuantizedMultiplier, ...]) -> None:
        self._multiplier = _table([f.multiplier for f in factors], "multipliers")
        self._shift = _table([f.shift for f in factors], "shifts")

    def apply(self, value: te.Expr, channel: te.Expr) -> te.Expr:
        return te.multiply_by_quantized_multiplier(
            value, _entry(self._multiplier, channel), _entry(self._shift, channel)
        )


class ReducedMultipliers:
    """Factors of the output channels for sums of 64 bits, which are rounded once.

    A sum that fits INT32 is multiplied in one instruction of 32 by 32 bits: with the multiplier in
    the upper half of a word, the upper half of the product lacks none of the bits that rounding
    looks at, if the factor is below 1/4.
    """

    def __init__(self, factors: tuple[QuantizedMultiplier, ...], accumulator: Accumulator) -> None:
        small = [reduced(factor) for factor in factors]
        shifts = [f.shift if f.multiplier else -2 for f in small]  # whatever a 0 is shifted by
        self._takes_high_half = not accumulator.is_wide and max(shifts) <= -2
        if self._takes_high_half:
            self._multiplier = _table([f.multiplier << 16 for f in small], "multipliers")
            self._shift = _table([-2 - shift for shift in shifts], "shifts")
        else:
            self._multiplier = _table([f.multiplier for f in small], "multipliers")
            self._shift = _table(shifts, "shifts")

    def apply(self, value: te.Expr, channel: te.Expr) -> te.Expr:
        multiplier, shift = _entry(self._multiplier, channel), _entry(self._shift, channel)
        if not self._takes_high_half:
            return te.multiply_by_reduced_multiplier(long(value), multiplier, shift)
        product = long(value) * long(te.as_expr(multiplier, DType.INT32))
        high = te.cast(DType.INT32, product >> 32)
        # Half of what the last bit is worth, added with a shift less.
        return ((high >> shift) + 1) >> 1


def sum_multipliers(
    factors: tuple[QuantizedMultiplier, ...], accumulator: Accumulator
) -> ChannelMultipliers | ReducedMultipliers:
    """Return what rescales the sums of an accumulator."""
    if accumulator.wraps:
        return ChannelMultipliers(factors)
    return ReducedMultipliers(factors, accumulator)


def _table(values: list[int], name: str) -> te.Tensor | int:
    if len(set(values)) == 1:
        return values[0]
    return te.constant(int32(np.array(values)), name)


def _entry(table: te.Tensor | int, channel: te.Expr) -> te.ExprLike:
    return table if isinstance(table, int) else table[channel]


def activate(value: te.Expr, activation: attributes.Activation) -> te.Expr:
    """Apply a fused activation to a FLOAT32 result."""
    return within(value, *activation.real_range)


def within(value: te.Expr, low: float, high: float) -> te.Expr:
    """Clamp a FLOAT32 to ends that are finite."""
    if math.isfinite(low):
        value = te.maximum(value, low)
    if math.isfinite(high):
        value = te.minimum(value, high)
    return value


def int32(values: Array) -> Array:
    """Return the integer data in the type that kernels compute in."""
    return np.ascontiguousarray(values, dtype=np.int32)


def channel_scales(layer: FormulaContext) -> te.Tensor:
    """Return the scales of hybrid weights, one per output channel."""
    weights, channels = layer.node.inputs[1], layer.node.output.shape[-1]
    scales = np.broadcast_to(np.array(weights.type.quant.scales, np.float32), (channels,))
    return te.constant(np.ascontiguousarray(scales), "weight_scales")
