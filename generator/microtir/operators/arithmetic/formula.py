"""Compute element-wise operators of two inputs, with numpy broadcasting."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.arithmetic import definition as arithmetic
from microtir.operators.arithmetic import float_formula
from microtir.operators.common import attributes, elementwise_formula, fixed_point, linear, types
from microtir.operators.common.arithmetic import (
    activate,
    centred,
    long,
    requantise,
    stored,
    wrapped_int32,
)
from microtir.operators.common.broadcast import ScalarFunction
from microtir.operators.common.formula import Formula

Scalars = Callable[[te.Expr, te.Expr], te.Expr]


def cost(node: Node) -> int:
    """Estimate instructions, from emulated Cortex-M3 and M4: int8 is rescaled three times."""
    if linear.rescales_in_float(node):
        return node.output.type.elements * float_formula.instructions(node)
    return node.output.type.elements * (45 if node.output.dtype in types.QUANTISED else 12)


def added_cost(node: Node) -> int:
    """Estimate the instructions of ADD_N."""
    return cost(node) * (len(node.inputs) - 1)


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
        op, dtype = node.op, node.output.dtype
        assert isinstance(op, arithmetic.BinaryArithmetic)
        if linear.rescales_in_float(node):
            return float_formula.in_float(node)
        if dtype in types.QUANTISED:
            return quantised(node, function)
        if not dtype.is_float:
            return _whole(op, dtype, function, wrapping)
        if op.activation is attributes.Activation.NONE:
            return function
        return lambda a, b: activate(function(a, b), op.activation)

    return elementwise_formula.by_node(of_node, cost)


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
    op = node.op
    assert isinstance(op, arithmetic.Add | arithmetic.Sub)
    a_type, b_type = (t.type for t in node.inputs)
    params = arithmetic.add_params(op, a_type, b_type, node.output.type)

    def combine(a: te.Expr, b: te.Expr) -> te.Expr:
        scaled = requantise(function(*_rescaled(params, a, b)), params.output)
        low, high = params.activation_min, params.activation_max
        return stored(scaled, params.output_zero_point, low, high, node.output.dtype)

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
    op = node.op
    assert isinstance(op, arithmetic.Mul)
    a_type, b_type = (t.type for t in node.inputs)
    params = arithmetic.mul_params(op, a_type, b_type, node.output.type)

    def combine(a: te.Expr, b: te.Expr) -> te.Expr:
        exact = centred(a, params.input1_zero_point) * centred(b, params.input2_zero_point)
        scaled = requantise(exact, params.multiplier)
        low, high = params.activation_min, params.activation_max
        return stored(scaled, params.output_zero_point, low, high, node.output.dtype)

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
    low, high = params.activation_min, params.activation_max

    def combine(a: te.Expr, b: te.Expr) -> te.Expr:
        left, right = _rescaled(params, a, b)
        difference = te.bind("difference", left - right)
        total = requantise(difference * difference, params.output)
        return stored(total, params.output_zero_point, low, high, node.output.dtype)

    return combine


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
