"""Compute SOFTMAX and LOG_SOFTMAX over the last axis.

The quantised forms follow gemmlowp's fixed point.  A difference of two int8 values is one of 256
numbers, so the exponentials are a table; what depends on the sum of a row is computed.
"""

from __future__ import annotations

import math

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.operators.common import fixed_point_formula, linear, lookup_formula
from microtir.operators.common.arithmetic import (
    Accumulator,
    int32,
    long,
    requantise,
    stored_raised,
    wide,
)
from microtir.operators.common.fixed_point import (
    constant,
    exp_on_negative_values,
    multiply_by_quantized_multiplier,
)
from microtir.operators.common.fixed_point_formula import leading_zeros
from microtir.operators.common.formula import FormulaContext, InputRows
from microtir.operators.common.multiplier import QuantizedMultiplier
from microtir.operators.softmax import definition
from microtir.tir.ir import Array

_DIFFERENCES = 256

_ROUND = te.rounding_divide_by_pot

_MUL = te.saturating_rounding_doubling_high_mul


def largest(x: InputRows, row: te.Expr, column: te.Expr) -> te.Expr:
    """Return the largest stored value along the last axis."""
    k = te.reduce_axis(0, x.extents.channels, "k")
    return te.max(x.at(row, column, k), k)


def softmax(layer: FormulaContext) -> None:
    """Emit SOFTMAX for int8, int16 or float32."""
    if layer.node.output.dtype is DType.FLOAT32:
        _softmax_float(layer)
    elif layer.node.inputs[0].dtype is DType.INT16:
        _softmax_int16(layer)
    elif linear.rescales_in_float(layer.node):
        _softmax_in_float(layer)
    else:
        _softmax_int8(layer)


def _softmax_float(layer: FormulaContext) -> None:
    op, x = layer.node.attributes(definition.Softmax), layer.image(0)

    def element(row: te.Expr, column: te.Expr, channel: te.Expr) -> te.Expr:
        top = largest(x, row, column)
        k = te.reduce_axis(0, x.extents.channels, "k")

        difference = x.at(row, column, k) - top
        total = te.sum(te.exp(difference if op.beta == 1.0 else difference * op.beta), k)
        return te.term(total, channel) / total

    layer.rows(element)


def exponentials(factor: QuantizedMultiplier, difference_min: int) -> Array:
    """Return exp(-d) in Q0 for differences d = 0, 1, ... of stored values, as far as they count.

    Behind them stands a 0, which all larger differences have.
    """
    count = min(_DIFFERENCES, 1 - difference_min)
    difference = multiply_by_quantized_multiplier(-np.arange(count, dtype=np.int64), *factor)
    powers = int32(exp_on_negative_values(difference, definition.DIFFERENCE_INTEGER_BITS))
    return powers if count == _DIFFERENCES else np.append(powers, np.int32(0))


def below(top: te.Expr, value: te.Expr) -> te.Expr:
    """Return how far a stored value lies below the largest of its row, in [0, 255].

    The maximum with 0 never binds. It states what the prover cannot know, that the largest value
    is not below any other, and so keeps the look-up provably inside its table.
    """
    return te.bind("difference", te.maximum(wide(top) - wide(value), 0))


def looked_up(table: te.Tensor, difference: te.Expr) -> te.Expr:
    """Return the entry of a table at a difference in [0, 255]; behind its end the last, which is 0.

    Most compilers make a branch of a look-up under a condition, so that time would depend on data.
    """
    entries = table.shape[0]
    if entries == _DIFFERENCES:
        return table[difference]
    assert isinstance(entries, int), "tables are constants"
    return table[te.minimum(difference, entries - 1)]


def _softmax_int8(layer: FormulaContext) -> None:
    """Give exp(x - max) / sum in Q0, as gemmlowp, the output's least value standing for 0."""
    op = layer.node.attributes(definition.Softmax)
    x, dtype = layer.image(0), layer.node.output.dtype
    params = definition.softmax_params(op, layer.node.inputs[0].type)
    powers = exponentials(params.multiplier, params.difference_min)
    table = te.constant(powers, "exponentials")
    output_bits = 31 - dtype.bits
    accumulator = Accumulator.of(layer)

    def element(row: te.Expr, column: te.Expr, channel: te.Expr) -> te.Expr:
        top = largest(x, row, column)
        k = te.reduce_axis(0, x.extents.channels, "k")
        entry = looked_up(table, below(top, x.at(row, column, k)))
        total = te.sum(accumulator.term(summand(entry)), k)
        if accumulator.is_wide:
            total = te.cast(DType.UINT32, te.minimum(total, DType.UINT32.max))
        headroom = te.bind("headroom", leading_zeros(total))
        scale = te.bind("scale", fixed_point_formula.reciprocal(total, headroom))
        power = looked_up(table, below(top, x.at(row, column, channel)))
        shift = te.bind("right", definition.SUM_INTEGER_BITS - headroom + output_bits)
        if dtype is DType.INT8 and x.extents.channels <= _SHORT_ROW:
            return stored_raised(_rounded_twice(scale, power, shift), dtype.min, dtype.max)
        quotient = _ROUND(_MUL(scale, power), shift)
        if dtype is DType.INT8 and x.extents.channels >= _LONG_ROW:
            quotient = _ROUND(_MUL(scale, power), te.minimum(shift, 31))
            # What counts is 1 then, as the mask of the original's division has all of its bits.
            counts = below(top, x.at(row, column, channel)) < 1 - params.difference_min
            is_long = te.clamp(shift - 31, 0, 1)
            quotient = te.maximum(quotient, te.select(counts, is_long, 0))
        return te.cast(dtype, te.clamp(quotient + dtype.min, dtype.min, dtype.max))

    layer.rows(element)


def summand(entry: te.Expr) -> te.Expr:
    """Return an exponential in Q12, rounded: it is not negative, and may be 2^31 - 1."""
    half = 1 << (definition.SUM_INTEGER_BITS - 1)
    return te.cast(
        DType.INT32, (te.cast(DType.UINT32, entry) + half) >> definition.SUM_INTEGER_BITS
    )


def scale_of_sum(total: te.Expr) -> te.Expr:
    """Return the inverse of the sum of a row's powers, normalised."""
    return fixed_point_formula.reciprocal(total, te.bind("headroom", leading_zeros(total)))


def shift_of_sum(total: te.Expr, dtype: DType) -> te.Expr:
    """Return by how much quotients are shifted to the right."""
    return (definition.SUM_INTEGER_BITS + 31 - dtype.bits) - leading_zeros(total)


def quotient(power: te.Expr, scale: te.Expr, shift: te.Expr) -> te.Expr:
    """Return an output of int8, of a row of at most 256 elements."""
    right = te.clamp(shift, 2, 31)
    raised = _rounded_twice(scale, power, te.bind("right", right))
    return stored_raised(raised, DType.INT8.min, DType.INT8.max)


_SHORT_ROW = 256
"""Elements of a row whose sum leaves room for 4 bits at least, so that 31 is the largest shift."""

_LONG_ROW = 512
"""Elements of a row whose sum may leave 3 bits only, so that results are shifted by 32 or more."""


def _rounded_twice(scale: te.Expr, power: te.Expr, shift: te.Expr) -> te.Expr:
    """Return `_ROUND(_MUL(scale, power), shift)` of numbers from 0 on; the shift is 2 to 31."""
    half = te.bind("half", te.const(1, DType.INT32) << (shift - 2))
    start = te.bind("start", long(half) * (1 << 32) + (1 << 30))
    upper = te.cast(DType.INT32, (long(scale) * long(power) + start) >> 32)
    return upper >> (shift - 1)


def _softmax_in_float(layer: FormulaContext) -> None:
    """Give exp(x - max) / sum from a table of powers; quotients are floats, rounded to even."""
    node, op, x = layer.node, layer.node.attributes(definition.Softmax), layer.image(0)
    table = te.constant(definition.float_powers(op, node.inputs[0].type), "powers")
    quant, dtype, accumulator = node.output.type.quant, node.output.dtype, Accumulator.of(layer)

    def element(row: te.Expr, column: te.Expr, channel: te.Expr) -> te.Expr:
        top = largest(x, row, column)
        k = te.reduce_axis(0, x.extents.channels, "k")
        powers = table[below(top, x.at(row, column, k))]
        total = te.bind("total", te.cast(DType.FLOAT32, te.sum(accumulator.term(powers), k)))
        power = te.cast(DType.FLOAT32, table[below(top, x.at(row, column, channel))])
        quotient = te.bind("quotient", power / total / quant.scale)
        whole = te.cast(DType.INT32, te.round_small(quotient)) + quant.zero_point
        return te.cast(dtype, te.clamp(whole, dtype.min, dtype.max))

    layer.rows(element)


def _softmax_int16(layer: FormulaContext) -> None:
    """Give exp(x - max) / sum by two tables: of exponentials, and of 1 over their sum."""
    op = layer.node.attributes(definition.Softmax)
    x, dtype = layer.image(0), layer.node.output.dtype
    multiplier = definition.int16_multiplier(op, layer.node.inputs[0].type)
    exponentials = lookup_formula.Int16Table(definition.exponential_table(), "exponentials")
    reciprocals = lookup_formula.Int16Table(definition.reciprocal_table(), "reciprocals")

    def in_range(value: te.Expr) -> te.Expr:
        return te.cast(DType.INT16, te.clamp(value, DType.INT16.min, DType.INT16.max))

    def element(row: te.Expr, column: te.Expr, channel: te.Expr) -> te.Expr:
        top = largest(x, row, column)
        k = te.reduce_axis(0, x.extents.channels, "k")

        def power(at: te.Expr) -> te.Expr:
            difference = wide(x.at(row, column, at)) - wide(top)
            steps = requantise(difference, multiplier) + DType.INT16.max
            return exponentials.at(in_range(te.bind("steps", steps)))

        total = te.cast(DType.UINT32, te.sum(power(k), k))
        headroom = te.bind("headroom", te.count_leading_zeros(total))
        # The sum normalised to [1, 2) in Q16, less 1.5: what the table of reciprocals is asked.
        rounded = ((total << te.cast(DType.UINT32, headroom - 1)) + (1 << 13)) >> 14
        above = te.cast(DType.INT32, rounded) - (1 << 16) - (1 << 15)
        scale = te.bind("scale", reciprocals.at(in_range(te.bind("above", above))))
        right = te.bind("right", 31 - headroom)
        half = te.const(1, DType.INT32) << (right - 1)
        quotient = (te.bind("power", power(channel)) * scale + half) >> right
        return te.cast(dtype, te.clamp(quotient, 0, dtype.max))

    layer.rows(element)


_SHIFT = te.saturating_shift_left


def log_softmax(layer: FormulaContext) -> None:
    """Emit LOG_SOFTMAX for int8 or float32."""
    if layer.node.output.dtype is DType.FLOAT32:
        _log_softmax_float(layer)
    else:
        _log_softmax_int8(layer)


def _log_softmax_float(layer: FormulaContext) -> None:
    x = layer.image(0)

    def element(row: te.Expr, column: te.Expr, channel: te.Expr) -> te.Expr:
        top = largest(x, row, column)
        k = te.reduce_axis(0, x.extents.channels, "k")
        total = te.sum(te.exp(x.at(row, column, k) - top), k)
        return x.at(row, column, channel) - top - te.bind("log_sum", te.log(total))

    layer.rows(element)


def _log_softmax_int8(layer: FormulaContext) -> None:
    """Give x - max - log(sum of exp(x - max)) in Q5; output Q4 in int8, zero point 127."""
    x, dtype = layer.image(0), layer.node.output.dtype
    params = definition.log_softmax_params(layer.node.inputs[0].type)
    table = te.constant(exponentials(params.multiplier, params.difference_min), "exponentials")
    # With a shift of 31 no difference but 0 counts, and 0 is 0 under any shift; TIR has no 2^31.
    accumulator = Accumulator.of(layer)
    to_q5 = params.multiplier._replace(shift=min(params.multiplier.shift, 30))

    def element(row: te.Expr, column: te.Expr, channel: te.Expr) -> te.Expr:
        top = largest(x, row, column)
        k = te.reduce_axis(0, x.extents.channels, "k")
        entry = looked_up(table, below(top, x.at(row, column, k)))
        total = te.sum(accumulator.term(summand(entry)), k)
        if accumulator.is_wide:
            total = te.cast(DType.INT32, te.minimum(total, DType.INT32.max))
        log_sum = te.bind("log_sum", _log_of_value_above_one(total))
        # Below this difference the subtraction of log_sum would leave the range of Q5.
        limit = requantise(log_sum + DType.INT32.min, params.reverse)
        lowest = te.bind("lowest", te.maximum(limit, params.difference_min - 1))
        difference = te.bind("difference", wide(x.at(row, column, channel)) - wide(top))
        value = _ROUND(requantise(difference, to_q5) - log_sum, _FRACTION_BITS)
        stored = te.clamp(value + dtype.max, dtype.min, dtype.max)
        return te.cast(dtype, te.select(difference > lowest, stored, dtype.min))

    layer.rows(element)


LEAST_RESULT = 255 << 22
"""Result that makes an output the least one, whatever the sum of its row."""

_FRACTION_BITS = 31 - definition.DIFFERENCE_INTEGER_BITS - definition.LOG_OUTPUT_INTEGER_BITS


def log_results(params: definition.LogSoftmaxParams) -> Array:
    """Return differences 0, 1, ... 255 in Q5, with the half of what an output's step is."""
    differences = np.arange(_DIFFERENCES)
    in_q5 = multiply_by_quantized_multiplier(-differences, *params.multiplier)
    results = np.minimum((1 << (_FRACTION_BITS - 1)) - in_q5, LEAST_RESULT)
    return np.where(-differences >= params.difference_min, results, LEAST_RESULT)


def least_difference(params: definition.LogSoftmaxParams, log_sum: int) -> int:
    """Return the difference from which on outputs are the least; `log_sum` bounds logarithms."""
    return int(multiply_by_quantized_multiplier(log_sum + DType.INT32.min, *params.reverse))


def log_of_sum(total: te.Expr) -> te.Expr:
    """Return the logarithm of the sum of a row's powers in Q5."""
    return _log_of_value_above_one(te.bind("total", total))


def log_output(result: te.Expr, log_sum: te.Expr, _shift: te.Expr) -> te.Expr:
    """Return an output of int8, of a row of at most 256 elements."""
    below_top = (result + te.clamp(log_sum, 0, 1 << 29)) >> _FRACTION_BITS
    return te.cast(DType.INT8, DType.INT8.max - te.clamp(below_top, 0, 255))


def _log_of_value_above_one(value: te.Expr) -> te.Expr:
    """Return the natural logarithm of a value >= 1 in Q12; result in Q5.

    See `operators.common.fixed_point.log_of_value_above_one`, of which this is the scalar form.
    """
    accumulator_bits = definition.DIFFERENCE_INTEGER_BITS + 1
    exponent_shift = 31 - accumulator_bits
    quarter = 1 << (exponent_shift - 2)
    root_half = constant(math.sqrt(0.5))

    head = te.bind("headroom_a", leading_zeros(value))
    r_a = _SHIFT(_MUL(_SHIFT(value, head - 1), root_half), 1)
    power_a = _SHIFT(definition.SUM_INTEGER_BITS - head, exponent_shift) + quarter
    head = te.bind("headroom_b", leading_zeros(_MUL(value, root_half)) - 1)
    r_b = _SHIFT(value, head)
    power_b = _SHIFT(definition.SUM_INTEGER_BITS - head, exponent_shift) - quarter

    log_r = _log_of_normalised(te.bind("r", te.minimum(r_a, r_b)), accumulator_bits)
    power = te.maximum(power_a, power_b)
    return _SHIFT(_MUL(power, constant(math.log(2.0))) + log_r, 1)


def _log_of_normalised(r: te.Expr, accumulator_bits: int) -> te.Expr:
    """Return log(r * 2^(1/4)) for r in Q0 near the fourth root of 1/2, in Q(accumulator_bits)."""
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
    return _MUL(scaled, fixed_point_formula.one_over_one_plus_x(denominator_minus_one))
