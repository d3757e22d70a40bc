"""SOFTMAX over the last axis.

The quantised form follows gemmlowp's fixed point.  A difference of two int8 values is one of 256
numbers, so the exponentials are a table; what depends on the sum of a row is computed.
"""

from __future__ import annotations

import numpy as np

from microtir import te
from microtir.kernels.common.layer import Edge, Layer, int32
from microtir.kernels.portable.arithmetic import Accumulator, wide
from microtir.operators.common.fixed_point import (
    constant,
    exp_on_negative_values,
    multiply_by_quantized_multiplier,
)
from microtir.operators.common.multiplier import QuantizedMultiplier
from microtir.operators.softmax.definition import (
    DIFFERENCE_INTEGER_BITS,
    SUM_INTEGER_BITS,
    Softmax,
    softmax_params,
)
from microtir.tir.dtype import DType
from microtir.tir.ir import Array

_DIFFERENCES = 256
_ROUND = te.rounding_divide_by_pot
_MUL = te.saturating_rounding_doubling_high_mul


def largest(x: Edge, row: te.Expr, column: te.Expr) -> te.Expr:
    """The largest stored value along the last axis."""
    k = te.reduce_axis(0, x.extents.channels, "k")
    return te.max(x.at(row, column, k), k)


def softmax(layer: Layer) -> None:
    """Emit SOFTMAX for int8 or float32."""
    if layer.node.output.dtype is DType.FLOAT32:
        _softmax_float(layer)
    else:
        _softmax_int8(layer)


def _softmax_float(layer: Layer) -> None:
    op, x = layer.node.op, layer.image(0)
    assert isinstance(op, Softmax)

    def element(row: te.Expr, column: te.Expr, channel: te.Expr) -> te.Expr:
        top = largest(x, row, column)
        k = te.reduce_axis(0, x.extents.channels, "k")

        def power(at: te.Expr) -> te.Expr:
            difference = x.at(row, column, at) - top
            return te.exp(difference if op.beta == 1.0 else difference * op.beta)

        return power(channel) / te.sum(power(k), k)

    layer.rows(element)


def exponentials(factor: QuantizedMultiplier, difference_min: int) -> Array:
    """exp(-d) in Q0 for differences d = 0, 1, ... of stored values, as far as they count."""
    count = min(_DIFFERENCES, 1 - difference_min)
    difference = multiply_by_quantized_multiplier(-np.arange(count, dtype=np.int64), *factor)
    return int32(exp_on_negative_values(difference, DIFFERENCE_INTEGER_BITS))


def below(top: te.Expr, value: te.Expr) -> te.Expr:
    """How far a stored value lies below the largest of its row, in [0, 255].

    The maximum with 0 never binds. It states what the prover cannot know, that the largest value
    is not below any other, and so keeps the look-up provably inside its table.
    """
    return te.bind("difference", te.maximum(wide(top) - wide(value), 0))


def looked_up(table: te.Tensor, difference: te.Expr) -> te.Expr:
    """Entry of a table at a difference in [0, 255]; 0 behind its end."""
    entries = table.shape[0]
    if entries == _DIFFERENCES:
        return table[difference]
    return te.select(difference < entries, table[difference], 0)


def _softmax_int8(layer: Layer) -> None:
    """gemmlowp: exp(x - max) / sum, in Q0; output scale 1/256, zero point -128."""
    op, x, dtype = layer.node.op, layer.image(0), layer.node.output.dtype
    assert isinstance(op, Softmax)
    params = softmax_params(op, layer.node.inputs[0].type)
    powers = exponentials(params.multiplier, params.difference_min)
    table = te.constant(powers, "exponentials")
    output_bits = 31 - dtype.bits
    accumulator = Accumulator.of(layer.node)

    def element(row: te.Expr, column: te.Expr, channel: te.Expr) -> te.Expr:
        top = largest(x, row, column)
        k = te.reduce_axis(0, x.extents.channels, "k")
        entry = looked_up(table, below(top, x.at(row, column, k)))
        total = te.sum(accumulator.term(_ROUND(entry, SUM_INTEGER_BITS)), k)
        if accumulator.is_wide:
            total = te.cast(DType.UINT32, te.minimum(total, DType.UINT32.max))
        headroom = te.bind("headroom", te.count_leading_zeros(te.cast(DType.UINT32, total)))
        scale = te.bind("scale", _reciprocal(total, headroom))
        power = looked_up(table, below(top, x.at(row, column, channel)))
        quotient = _ROUND(_MUL(scale, power), SUM_INTEGER_BITS - headroom + output_bits)
        return te.cast(dtype, te.clamp(quotient + dtype.min, dtype.min, dtype.max))

    layer.rows(element)


def _reciprocal(value: te.Expr, headroom: te.Expr) -> te.Expr:
    """1 / (value normalised to [1, 2)) in Q0."""
    bits = te.cast(DType.UINT32, value) << te.cast(DType.UINT32, headroom)
    return one_over_one_plus_x(te.cast(DType.INT32, bits - (1 << 31)))


def one_over_one_plus_x(fraction: te.Expr) -> te.Expr:
    """1 / (1 + x) for x in [-1/2, 1), both in Q0, by three Newton-Raphson steps (gemmlowp).

    gemmlowp saturates each step's correction to 32 bits.  It never does: with d = (1 + x) / 2 in
    [1/4, 1) an estimate is at most 48/17 and its error |1 - d * estimate| at most 0.42, so that
    their product in Q4, times 4, is below 2^30.
    """
    half = te.bind("half_denominator", (fraction >> 1) + (1 << 30))
    estimate = constant(48 / 17, 2) + _MUL(half, constant(-32 / 17, 2))
    for _ in range(3):
        x = te.bind("estimate", estimate)
        error = (1 << 29) - _MUL(half, x)
        estimate = x + _MUL(x, error) * 4
    return te.saturating_shift_left(estimate, 1)
