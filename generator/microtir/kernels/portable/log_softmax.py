"""LOG_SOFTMAX over the last axis; the quantised form follows gemmlowp's fixed point."""

from __future__ import annotations

import math

from microtir import te
from microtir.kernels.common.layer import Layer
from microtir.kernels.portable.arithmetic import Accumulator, requantise, wide
from microtir.kernels.portable.softmax import (
    below,
    exponentials,
    largest,
    looked_up,
    one_over_one_plus_x,
)
from microtir.operators.common.fixed_point import constant
from microtir.operators.softmax.definition import (
    DIFFERENCE_INTEGER_BITS,
    LOG_OUTPUT_INTEGER_BITS,
    SUM_INTEGER_BITS,
    log_softmax_params,
)
from microtir.tir.dtype import DType

_ROUND = te.rounding_divide_by_pot
_MUL = te.saturating_rounding_doubling_high_mul
_SHIFT = te.saturating_shift_left


def log_softmax(layer: Layer) -> None:
    """Emit LOG_SOFTMAX for int8 or float32."""
    if layer.node.output.dtype is DType.FLOAT32:
        _log_softmax_float(layer)
    else:
        _log_softmax_int8(layer)


def _log_softmax_float(layer: Layer) -> None:
    x = layer.image(0)

    def element(row: te.Expr, column: te.Expr, channel: te.Expr) -> te.Expr:
        top = largest(x, row, column)
        k = te.reduce_axis(0, x.extents.channels, "k")
        total = te.sum(te.exp(x.at(row, column, k) - top), k)
        return x.at(row, column, channel) - top - te.bind("log_sum", te.log(total))

    layer.rows(element)


def _log_softmax_int8(layer: Layer) -> None:
    """X - max - log(sum of exp(x - max)) in Q5; output Q4 in int8, zero point 127."""
    x, dtype = layer.image(0), layer.node.output.dtype
    params = log_softmax_params(layer.node.inputs[0].type)
    table = te.constant(exponentials(params.multiplier, params.difference_min), "exponentials")
    fraction_bits = 31 - DIFFERENCE_INTEGER_BITS - LOG_OUTPUT_INTEGER_BITS
    # With a shift of 31 no difference but 0 counts, and 0 is 0 under any shift; TIR has no 2^31.
    accumulator = Accumulator.of(layer.node)
    to_q5 = params.multiplier._replace(shift=min(params.multiplier.shift, 30))

    def element(row: te.Expr, column: te.Expr, channel: te.Expr) -> te.Expr:
        top = largest(x, row, column)
        k = te.reduce_axis(0, x.extents.channels, "k")
        entry = looked_up(table, below(top, x.at(row, column, k)))
        total = te.sum(accumulator.term(_ROUND(entry, SUM_INTEGER_BITS)), k)
        if accumulator.is_wide:
            total = te.cast(DType.INT32, te.minimum(total, DType.INT32.max))
        log_sum = te.bind("log_sum", _log_of_value_above_one(total))
        # Below this difference the subtraction of log_sum would leave the range of Q5.
        limit = requantise(log_sum + DType.INT32.min, params.reverse)
        lowest = te.bind("lowest", te.maximum(limit, params.difference_min - 1))
        difference = te.bind("difference", wide(x.at(row, column, channel)) - wide(top))
        value = _ROUND(requantise(difference, to_q5) - log_sum, fraction_bits)
        stored = te.clamp(value + dtype.max, dtype.min, dtype.max)
        return te.cast(dtype, te.select(difference > lowest, stored, dtype.min))

    layer.rows(element)


def _log_of_value_above_one(value: te.Expr) -> te.Expr:
    """Natural logarithm of a value >= 1 in Q12; result in Q5.

    See `graph.fixed_point.log_of_value_above_one`, of which this is the scalar form.
    """
    accumulator_bits = DIFFERENCE_INTEGER_BITS + 1
    exponent_shift = 31 - accumulator_bits
    quarter = 1 << (exponent_shift - 2)
    root_half = constant(math.sqrt(0.5))

    head = te.bind("headroom_a", _leading_zeros(value))
    r_a = _SHIFT(_MUL(_SHIFT(value, head - 1), root_half), 1)
    power_a = _SHIFT(SUM_INTEGER_BITS - head, exponent_shift) + quarter
    head = te.bind("headroom_b", _leading_zeros(_MUL(value, root_half)) - 1)
    r_b = _SHIFT(value, head)
    power_b = _SHIFT(SUM_INTEGER_BITS - head, exponent_shift) - quarter

    log_r = _log_of_normalised(te.bind("r", te.minimum(r_a, r_b)), accumulator_bits)
    power = te.maximum(power_a, power_b)
    return _SHIFT(_MUL(power, constant(math.log(2.0))) + log_r, 1)


def _leading_zeros(value: te.Expr) -> te.Expr:
    return te.count_leading_zeros(te.cast(DType.UINT32, value))


def _log_of_normalised(r: te.Expr, accumulator_bits: int) -> te.Expr:
    """log(r * 2^(1/4)) for r in Q0 near the fourth root of 1/2, in Q(accumulator_bits)."""
    root = math.sqrt(math.sqrt(2.0))
    centre = constant(math.sqrt(math.sqrt(0.5)))
    # floor((r + centre + 1) / 2) without leaving int32: halves first, then the lost bits.
    p = te.bind("p", (r >> 1) + (centre >> 1) + (((r & 1) + (centre & 1) + 1) >> 1))
    q = te.bind("q", (r - centre) * 2)
    square = te.bind("square", _MUL(q, q))
    numerator = _MUL(q, r) + _MUL(_MUL(q, square), constant(11 / 240 * root))
    inner = q + constant(2 / root - root) + _MUL(constant(root / 20), square)
    denominator_minus_one = te.bind("denominator", _MUL(p, inner) + _MUL(constant(root / 4), q))
    scaled = _ROUND(numerator, accumulator_bits)
    return _MUL(scaled, one_over_one_plus_x(denominator_minus_one))
