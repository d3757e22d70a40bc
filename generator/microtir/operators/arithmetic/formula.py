"""Compute element-wise operators of two inputs, with numpy broadcasting."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.arithmetic import definition as arithmetic
from microtir.operators.arithmetic import float_formula
from microtir.operators.common import attributes, fixed_point, linear, types
from microtir.operators.common.arithmetic import (
    activate,
    centred,
    long,
    requantise,
    stored,
    wrapped_int32,
)
from microtir.operators.common.broadcast import ROWS, ScalarFunction, elementwise
from microtir.operators.common.formula import Formula, FormulaContext

Scalars = Callable[[te.Expr, te.Expr], te.Expr]


def cost(node: Node) -> int:
    """Estimate instructions, from emulated Cortex-M3 and M4: int8 is rescaled three times."""
    if linear.rescales_in_float(node):
        return node.output.type.elements * float_formula.instructions(node)
    return node.output.type.elements * (45 if node.output.dtype in types.QUANTISED else 12)


def _added_cost(node: Node) -> int:
    return cost(node) * (len(node.inputs) - 1)


def compute(layer: FormulaContext) -> None:
    """Give the output of an operator of two inputs."""
    node = layer.node
    if isinstance(node.op, arithmetic.BinaryArithmetic):
        elementwise(layer, _arithmetic(node, node.op))
    else:
        elementwise(layer, _EXTREMA[type(node.op)])


_EXTREMA: Mapping[type[Operator], ScalarFunction] = MappingProxyType(
    {arithmetic.Minimum: te.minimum, arithmetic.Maximum: te.maximum}
)


def _arithmetic(node: Node, op: arithmetic.BinaryArithmetic) -> Scalars:
    dtype = node.output.dtype
    if linear.rescales_in_float(node):
        return float_formula.in_float(node)
    if dtype in types.QUANTISED:
        return _product(node, op) if isinstance(op, arithmetic.Mul) else _sum(node, op)
    if not dtype.is_float:
        return _whole(op, dtype)
    function = _EXACT[type(op)]
    if op.activation is attributes.Activation.NONE:
        return function
    return lambda a, b: activate(function(a, b), op.activation)


_EXACT: Mapping[type[Operator], Scalars] = MappingProxyType(
    {arithmetic.Add: operator.add, arithmetic.Sub: operator.sub, arithmetic.Mul: operator.mul}
)
_WRAPPING: Mapping[type[Operator], Scalars] = MappingProxyType(
    {
        arithmetic.Add: te.wrapping_add,
        arithmetic.Sub: te.wrapping_sub,
        arithmetic.Mul: te.wrapping_mul,
    }
)


def _whole(op: arithmetic.BinaryArithmetic, dtype: DType) -> Scalars:
    """Return the function of integers without a scale, which wraps."""
    low, high = arithmetic.whole_range(op, dtype)

    def combine(a: te.Expr, b: te.Expr) -> te.Expr:
        if dtype is DType.INT32:
            value = wrapped_int32(_EXACT[type(op)](long(a), long(b)))
        else:
            value = _WRAPPING[type(op)](a, b)
        if low > dtype.min:
            value = te.maximum(value, low)
        return te.minimum(value, high) if high < dtype.max else value

    return combine


def _sum(node: Node, op: arithmetic.BinaryArithmetic) -> Scalars:
    """Return quantised ADD and SUB."""
    assert isinstance(op, arithmetic.Add | arithmetic.Sub)
    a_type, b_type = (t.type for t in node.inputs)
    params = arithmetic.add_params(op, a_type, b_type, node.output.type)
    function = _EXACT[type(op)]

    def combine(a: te.Expr, b: te.Expr) -> te.Expr:
        total = requantise(function(*_rescaled(params, a, b)), params.output)
        low, high = params.activation_min, params.activation_max
        return stored(total, params.output_zero_point, low, high, node.output.dtype)

    return combine


def _rescaled(params: arithmetic.AddParams, a: te.Expr, b: te.Expr) -> tuple[te.Expr, te.Expr]:
    """Return both operands centred, widened and rescaled."""
    factor = 1 << params.left_shift
    return (
        requantise(centred(a, params.input1_zero_point) * factor, params.input1),
        requantise(centred(b, params.input2_zero_point) * factor, params.input2),
    )


def _product(node: Node, op: arithmetic.Mul) -> Scalars:
    """Return quantised MUL."""
    a_type, b_type = (t.type for t in node.inputs)
    params = arithmetic.mul_params(op, a_type, b_type, node.output.type)

    def combine(a: te.Expr, b: te.Expr) -> te.Expr:
        product = centred(a, params.input1_zero_point) * centred(b, params.input2_zero_point)
        total = requantise(product, params.multiplier)
        low, high = params.activation_min, params.activation_max
        return stored(total, params.output_zero_point, low, high, node.output.dtype)

    return combine


def squared_difference(layer: FormulaContext) -> None:
    """Give the output of SQUARED_DIFFERENCE."""
    dtype = layer.node.output.dtype
    if dtype in types.QUANTISED:
        elementwise(layer, _quantised_difference(layer.node))
    elif dtype is DType.INT32:
        elementwise(layer, _wrapping_difference)
    else:
        elementwise(layer, _difference)


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


def add_n(layer: FormulaContext) -> None:
    """Give the output of ADD_N."""
    node = layer.node
    if node.output.dtype is DType.INT8:
        elementwise(layer, _quantised_total(node))
    elif node.output.dtype is DType.INT32:
        elementwise(layer, lambda *values: wrapped_int32(_total(map(long, values))))
    else:
        elementwise(layer, lambda *values: _total(values))


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


_BINARY = Formula(compute, cost, ROWS)

FORMULAS: Mapping[type[Operator], Formula] = MappingProxyType(
    {
        arithmetic.Add: _BINARY,
        arithmetic.Sub: _BINARY,
        arithmetic.Mul: _BINARY,
        arithmetic.Minimum: _BINARY,
        arithmetic.Maximum: _BINARY,
        arithmetic.SquaredDifference: Formula(squared_difference, cost, ROWS),
        arithmetic.AddN: Formula(add_n, _added_cost, ROWS),
        arithmetic.Pow: Formula(lambda layer: elementwise(layer, te.pow), 150, ROWS),
        arithmetic.Atan2: Formula(lambda layer: elementwise(layer, te.atan2), 150, ROWS),
    }
)
