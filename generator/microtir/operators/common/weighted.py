"""Write what operators with weights do around their integer sums, as tensor expressions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.operators.common import fixed_point, linear
from microtir.operators.common.arithmetic import (
    Accumulator,
    ChannelMultipliers,
    ReducedMultipliers,
    centred,
    stored,
    sum_multipliers,
    wide,
)
from microtir.operators.common.attributes import Rescaling
from microtir.operators.common.formula import Elements, FormulaContext


@dataclass(frozen=True, slots=True)
class WeightedArithmetic:
    """The arithmetic of a layer with integer weights: terms, start and result of its sums."""

    params: linear.LinearParams
    accumulator: Accumulator
    zero_point: int  # subtracted from every element of the input
    bias: te.Tensor
    factors: ChannelMultipliers | ReducedMultipliers
    dtype: DType
    offset: int = 0  # added to every weight

    @staticmethod
    def of(
        layer: FormulaContext, params: linear.LinearParams, weight_sums: fixed_point.Ints | None
    ) -> WeightedArithmetic:
        """Return the arithmetic of a layer.

        Where each output sees all of its weights, the zero point's share of the sum is a constant
        of the channel and moves into the bias; at a clipped border it is not.  It stays outside
        where the bias might not hold it.

        Args:
            layer: the operator.
            params: of the operator.
            weight_sums: of each output channel, if each of its sums has all weights.
        """
        is_long = linear.has_long_sums(layer.node)
        accumulator = Accumulator.of(layer, wraps=not is_long)
        dtype = layer.node.output.dtype
        arithmetic = WeightedArithmetic.with_bias(
            params, linear.bias_of(layer.node), weight_sums, accumulator, dtype
        )
        return replace(arithmetic, offset=_offset(layer))

    @staticmethod
    def with_bias(
        params: linear.LinearParams,
        bias: fixed_point.Ints,
        weight_sums: fixed_point.Ints | None,
        accumulator: Accumulator,
        dtype: DType,
    ) -> WeightedArithmetic:
        """Return the arithmetic of sums with a bias for each output channel.

        Args:
            params: of zero points, factors and clamps.
            bias: of each output channel.
            weight_sums: as in `of`.
            accumulator: of the sums; those that do not wrap are rescaled with one rounding.
            dtype: of the output.
        """
        zero_point, is_long = params.input_zero_point, not accumulator.wraps
        if weight_sums is not None and not accumulator.is_wide:
            bias, zero_point = bias - zero_point * weight_sums, 0
        is_table_long = is_long and accumulator.is_wide
        values = np.ascontiguousarray(bias, np.int64 if is_table_long else np.int32)
        return WeightedArithmetic(
            params,
            accumulator,
            zero_point,
            te.constant(values, "bias"),
            sum_multipliers(params.multipliers, accumulator),
            dtype,
        )

    def product(self, x: te.Expr, w: te.Expr) -> te.Expr:
        """Return one term of a sum, of an element of the input and a stored weight."""
        return self.accumulator.term(centred(x, self.zero_point) * (wide(w) + self.offset))

    def start(self, channel: te.Expr) -> te.Expr:
        return self.accumulator.term(self.bias[channel])

    def stored(self, total: te.Expr, channel: te.Expr) -> te.Expr:
        """Return the output element of a sum that began with the bias."""
        params = self.params
        if params.in_double:
            return self._stored_in_double(total, channel)
        if params.factors:
            sum_ = self.accumulator.total(total)
            factor = float_factor(params.factors, channel)
            return stored_in_float(sum_, factor, StoredRange.of(params), self.dtype)
        scaled = self.factors.apply(self.accumulator.total(total), channel)
        low, high = params.activation_min, params.activation_max
        return stored(scaled, params.output_zero_point, low, high, self.dtype)

    def _stored_in_double(self, total: te.Expr, channel: te.Expr) -> te.Expr:
        of_channel = np.array(self.params.factors)
        factor = te.const(of_channel[0], DType.FLOAT64)
        if len(set(self.params.factors)) > 1:
            factor = te.constant(of_channel, "factors")[channel]
        scaled = te.cast(DType.FLOAT64, self.accumulator.total(total)) * factor
        limits, is_exact = StoredRange.of(self.params), self.params.rescaling is Rescaling.EXACT
        return stored_in_double(scaled, limits, self.dtype, ties_to_even=is_exact)


def float_factor(factors: tuple[float, ...], channel: te.Expr) -> te.Expr:
    """Return the factor of a channel; what all channels share is an immediate."""
    if len(set(factors)) == 1:
        return te.const(factors[0], DType.FLOAT32)
    return te.constant(np.array(factors, np.float32), "factors")[channel]


@dataclass(frozen=True, slots=True)
class StoredRange:
    """The zero point of an output, and the least and the largest stored value."""

    zero_point: int
    low: int
    high: int

    @staticmethod
    def of(params: linear.LinearParams) -> StoredRange:
        return StoredRange(params.output_zero_point, params.activation_min, params.activation_max)


def stored_in_float(total: te.Expr, factor: te.Expr, limits: StoredRange, dtype: DType) -> te.Expr:
    """Return a sum rescaled in float32: clamped, so that it fits an integer, and rounded."""
    zero_point = limits.zero_point
    low, high = limits.low - zero_point, limits.high - zero_point
    scaled = te.no_fp_contract(te.cast(DType.FLOAT32, total) * factor)
    clamped = te.bind("clamped", te.clamp(scaled, float(low), float(high)))
    return te.cast(dtype, te.cast(DType.INT32, te.round_small(clamped)) + zero_point)


def stored_in_double(
    scaled: te.Expr, limits: StoredRange, dtype: DType, *, ties_to_even: bool
) -> te.Expr:
    """Return a double as stored: clamped, so that it fits an integer, and rounded.

    Of two nearest integers it is the even one, or else the one away from zero.
    """
    low, high = (end - limits.zero_point for end in (limits.low, limits.high))
    real = te.bind("real", te.clamp(scaled, float(low), float(high)))
    whole = te.bind("whole", te.cast(DType.INT32, real))  # towards zero
    rest = te.bind("rest", real - te.cast(DType.FLOAT64, whole))
    tie = whole & 1 if ties_to_even else te.as_expr(1, DType.INT32)
    down = te.select(rest < -0.5, -1, te.select(rest <= -0.5, -tie, 0))
    step = te.select(rest > 0.5, 1, te.select(rest >= 0.5, tie, down))
    return te.cast(dtype, whole + step + limits.zero_point)


def stored_weights(layer: FormulaContext) -> Elements:
    """Return the weights as they are kept: less the offset of `WeightedArithmetic.of`."""
    if layer.packed_weights is not None:
        return layer.packed_weights
    offset = _offset(layer)
    if offset == 0:
        return layer.weights
    return te.constant((layer.data(1) - offset).astype(np.int8), "weights")


def _offset(layer: FormulaContext) -> int:
    """Return what keeps int16 weights in int8, or 0 where none does."""
    values = layer.data(1)
    if values.dtype != np.int16:
        return 0
    offset = int(values.min()) - DType.INT8.min
    return offset if int(values.max()) - offset <= DType.INT8.max else 0
