"""Compute element-wise operators of two inputs, with numpy broadcasting."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.arithmetic import definition as arithmetic
from microtir.operators.arithmetic import fixed_form, float_formula
from microtir.operators.arithmetic.form_formula import Scalars, of_form
from microtir.operators.common import attributes, elementwise_formula, fixed_point, linear, types
from microtir.operators.common.arithmetic import (
    RoundedTwice,
    activate,
    centred,
    long,
    requantise,
    requantise_small,
    stored,
    wide,
    wrapped_int32,
)
from microtir.operators.common.broadcast import ScalarFunction
from microtir.operators.common.formula import Formula

PRODUCT = 1 << 16
"""More than a product of centred int8 is."""

_SUM = 2 * 255 << 19
"""The most that a sum of widened int8 is."""

_SQUARE = (255 << 7) ** 2
"""The most that the square of a difference of widened int8 is."""


def of_two(
    function: Scalars, wrapping: Scalars, quantised: Callable[[Node, Scalars], Scalars]
) -> Formula:
    """Compute a function of two numbers.

    Args:
        function: of floats, and exact ones of integers.
        wrapping: of int64.
        quantised: gives the function of a node that is rescaled in fixed point.
    """

    def of_node(node: Node) -> Scalars:
        op, dtype = node.attributes(arithmetic.BinaryArithmetic), node.output.dtype
        if linear.rescales_in_float(node):
            return float_formula.in_float(node)
        if dtype in types.QUANTISED:
            return quantised(node, function)
        if not dtype.is_float:
            return _whole(op, dtype, function, wrapping)
        if op.activation is attributes.Activation.NONE:
            return function
        return lambda a, b: activate(function(a, b), op.activation)

    return elementwise_formula.by_node(of_node)


def _whole(
    op: arithmetic.BinaryArithmetic, dtype: DType, function: Scalars, wrapping: Scalars
) -> Scalars:
    """Return the function of integers without a scale, which wraps."""
    low, high = arithmetic.whole_range(op, dtype)

    def combine(a: te.Expr, b: te.Expr) -> te.Expr:
        if dtype is DType.INT32:
            value = wrapped_int32(function(long(a), long(b)))
        else:
            value = wrapping(a, b)
        if low > dtype.min:
            value = te.maximum(value, low)
        return te.minimum(value, high) if high < dtype.max else value

    return combine


def total(node: Node, function: Scalars) -> Scalars:
    """Return quantised ADD and SUB."""
    op = node.attributes(arithmetic.Add, arithmetic.Sub)
    a_type, b_type = (t.type for t in node.inputs)
    params = arithmetic.add_params(op, a_type, b_type, node.output.type)
    ends = params.activation_min, params.activation_max
    form = fixed_form.sum_form(node)
    if form is not None:
        return of_form(form, node, *ends)
    finish = RoundedTwice.of(params.output, _SUM, params.output_zero_point)
    if finish is not None and a_type.dtype is b_type.dtype is node.output.dtype is DType.INT8:
        return _short_total(params, function, finish)

    def combine(a: te.Expr, b: te.Expr) -> te.Expr:
        scaled = requantise(function(*_rescaled(params, a, b)), params.output)
        return stored(scaled, params.output_zero_point, *ends, node.output.dtype)

    return combine


def _short_total(params: arithmetic.AddParams, function: Scalars, finish: RoundedTwice) -> Scalars:
    """Return all steps, for scales at which many sums end half way between two integers."""

    def combine(a: te.Expr, b: te.Expr) -> te.Expr:
        total = function(_short_operand(a, params, 0), _short_operand(b, params, 1))
        doubled = te.bind("sum", total * finish.scale)
        return finish.stored(doubled, params.activation_min, params.activation_max)

    return combine


def _rescaled(params: arithmetic.AddParams, a: te.Expr, b: te.Expr) -> tuple[te.Expr, te.Expr]:
    """Return both operands centred, widened and rescaled."""
    factor = 1 << params.left_shift
    return (
        requantise(centred(a, params.input1_zero_point) * factor, params.input1),
        requantise(centred(b, params.input2_zero_point) * factor, params.input2),
    )


def product(node: Node, _function: Scalars) -> Scalars:
    """Return quantised MUL."""
    op = node.attributes(arithmetic.Mul)
    a_type, b_type = (t.type for t in node.inputs)
    params = arithmetic.mul_params(op, a_type, b_type, node.output.type)

    low, high = params.activation_min, params.activation_max
    first, second = params.input1_zero_point, params.input2_zero_point
    if a_type.dtype is b_type.dtype is node.output.dtype is DType.INT8:
        finish = RoundedTwice.of(params.multiplier, PRODUCT, params.output_zero_point)
        if finish is not None:
            return _small_product(node, finish, (low, high))

    def combine(a: te.Expr, b: te.Expr) -> te.Expr:
        scaled = requantise(centred(a, first) * centred(b, second), params.multiplier)
        return stored(scaled, params.output_zero_point, low, high, node.output.dtype)

    return combine


def _small_product(node: Node, finish: RoundedTwice, ends: tuple[int, int]) -> Scalars:
    """Return the product of int8; what the input with fewer elements is for is computed once."""
    first, second = node.inputs
    inner = 0 if first.type.elements >= second.type.elements else 1
    zero_points = first.type.quant.zero_point, second.type.quant.zero_point
    is_broadcast = first.type.elements != second.type.elements

    def combine(a: te.Expr, b: te.Expr) -> te.Expr:
        values = a, b
        factor = centred(values[1 - inner], zero_points[1 - inner]) * finish.scale
        value = wide(values[inner])
        if is_broadcast:
            factor = te.bind("factor", factor)
            product = value * factor + te.bind("start", factor * -zero_points[inner])
        else:
            product = (value - zero_points[inner]) * factor
        return finish.stored(te.bind("product", product), *ends)

    return combine


def squared_difference(node: Node) -> ScalarFunction:
    """Return SQUARED_DIFFERENCE."""
    dtype = node.output.dtype
    if dtype in types.QUANTISED:
        return _quantised_difference(node)
    return _wrapping_difference if dtype is DType.INT32 else _difference


def _difference(a: te.Expr, b: te.Expr) -> te.Expr:
    difference = te.bind("difference", a - b)
    return difference * difference


def _wrapping_difference(a: te.Expr, b: te.Expr) -> te.Expr:
    difference = te.bind("difference", long(wrapped_int32(long(a) - long(b))))
    return wrapped_int32(difference * difference)


def _quantised_difference(node: Node) -> Scalars:
    first, second = (tensor.type for tensor in node.inputs)
    params = arithmetic.difference_params(first, second, node.output.type)
    ends = params.activation_min, params.activation_max
    dtype = node.output.dtype
    finish = finish_of_squares(params)

    def combine(a: te.Expr, b: te.Expr) -> te.Expr:
        left, right = _rescaled(params, a, b)
        difference = te.bind("difference", left - right)
        total = requantise(difference * difference, params.output)
        return stored(total, params.output_zero_point, *ends, dtype)

    if dtype is not DType.INT8 or finish is None:
        return combine

    return short_difference(params, finish, lambda x, n: _short_operand(x, params, n))


def short_difference(
    params: arithmetic.AddParams, finish: RoundedTwice, operand: Callable[[te.Expr, int], te.Expr]
) -> Scalars:
    """Return SQUARED_DIFFERENCE of int8, given what gives a rescaled operand by its position."""

    def combine(a: te.Expr, b: te.Expr) -> te.Expr:
        difference = te.bind("difference", operand(a, 0) - operand(b, 1))
        square = difference * difference * finish.scale
        return finish.stored(square, params.activation_min, params.activation_max)

    return combine


def finish_of_squares(params: arithmetic.AddParams) -> RoundedTwice | None:
    """Return what rescales squares of widened int8."""
    zero_point = params.output_zero_point
    return RoundedTwice.of(params.output, _SQUARE, zero_point, is_positive=True)


def _short_operand(x: te.Expr, params: arithmetic.AddParams, position: int) -> te.Expr:
    """Return an int8 operand centred, widened and rescaled."""
    bits, zero_point, multiplier = params.left_shift, *params.operand(position)
    line = fixed_form.operand_line(bits, zero_point, multiplier)
    if line is None:
        widened = centred(x, zero_point) * (1 << bits)
        return te.bind("operand", requantise_small(widened, multiplier, 255 << bits))
    factor, offset, shift = line
    value = wide(x) * factor + offset
    return te.bind("operand", value >> shift if shift else value)


def add_n(node: Node) -> ScalarFunction:
    """Return ADD_N."""
    if node.output.dtype is DType.INT8:
        return _quantised_total(node)
    if node.output.dtype is DType.INT32:
        return lambda *values: wrapped_int32(_total(map(long, values)))
    return lambda *values: _total(values)


def _total(values: Iterable[te.Expr]) -> te.Expr:
    return functools.reduce(operator.add, values)


def _quantised_total(node: Node) -> ScalarFunction:
    """Return int8 ADD_N, which begins with what the zero point stands for."""
    params = arithmetic.add_n_params(node)
    factor = 1 << params.left_shift
    zero = -params.input1_zero_point * factor
    start = int(fixed_point.multiply_by_quantized_multiplier(zero, *params.input1))
    low, high = params.activation_min, params.activation_max
    is_wide = len(node.inputs) > arithmetic.MOST_ADDED

    def combine(*values: te.Expr) -> te.Expr:
        centres = (centred(value, params.input1_zero_point) * factor for value in values)
        terms = [requantise(value, params.input1) for value in centres]
        if is_wide:
            total = wrapped_int32(_total(map(long, terms)) + start)
        else:
            total = _total(terms) + start
        scaled = requantise(te.bind("total", total), params.output)
        return stored(scaled, params.output_zero_point, low, high, DType.INT8)

    return combine
