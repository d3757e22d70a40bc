"""Compute activations on float32 and int16; those on int8 are tables of their meaning."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.activations import definition as activations
from microtir.operators.activations.gelu_table import gelu_table_of_int16
from microtir.operators.common import attributes, broadcast, erfc_formula
from microtir.operators.common.arithmetic import activate, centred, requantise, stored, wide
from microtir.operators.common.formula import Formula, FormulaContext
from microtir.operators.common.lookup_formula import Int16Table
from microtir.operators.common.sigmoid_table_formula import SigmoidTable

Scalar: TypeAlias = Callable[[te.Expr], te.Expr]


def _function(
    of_float: Callable[[Operator, te.Expr], te.Expr],
    of_int16: Callable[[Node], Scalar] | None = None,
    cost: int = 20,
) -> Formula:
    """Compute a function of one element, at a cost each; the argument is evaluated once.

    Args:
        of_float: the function of an operator.
        of_int16: gives the function of a node on stored values, an INT32 within int16.
        cost: of an element.
    """

    def compute(layer: FormulaContext) -> None:
        node, x = layer.node, layer.image(0)
        if node.output.dtype is DType.INT16 and of_int16 is not None:
            function = of_int16(node)
            layer.rows(lambda *at: te.cast(DType.INT16, function(te.bind("value", x.at(*at)))))
        else:
            layer.rows(lambda *at: of_float(node.op, te.bind("value", x.at(*at))))

    return Formula(compute, cost)


def _relu(op: Operator, x: te.Expr) -> te.Expr:
    assert isinstance(op, activations.Relu)
    return activate(x, op.kind)


def _leaky_relu(op: Operator, x: te.Expr) -> te.Expr:
    assert isinstance(op, activations.LeakyRelu)
    return te.select(x > 0.0, x, x * op.alpha)


def _relu_of_int16(node: Node) -> Scalar:
    op, source, output = node.op, node.inputs[0].type, node.output.type
    assert isinstance(op, activations.Relu)
    params = activations.relu_params(op, source, output)

    def function(x: te.Expr) -> te.Expr:
        value = wide(x)
        if params.multiplier is not None:
            value = requantise(value - params.input_zero_point, params.multiplier)
            value = te.bind("scaled", value + params.output_zero_point)
        return te.clamp(value, params.activation_min, params.activation_max)

    return function


def _leaky_relu_of_int16(node: Node) -> Scalar:
    op, source, output = node.op, node.inputs[0].type, node.output.type
    assert isinstance(op, activations.LeakyRelu)
    params = activations.leaky_relu_params(op, source, output)
    sign = -1 if params.alpha.multiplier < 0 else 1
    slope = params.alpha._replace(multiplier=abs(params.alpha.multiplier))

    def function(x: te.Expr) -> te.Expr:
        value = te.bind("centred", centred(x, params.input_zero_point))
        above, below = requantise(value, params.identity), requantise(value, slope) * sign
        scaled = te.select(value >= 0, above, below) + params.output_zero_point
        return te.clamp(te.bind("scaled", scaled), params.minimum, params.maximum)

    return function


def prelu(layer: FormulaContext) -> None:
    """Give PRELU of float32 or integers."""
    node = layer.node
    if node.output.dtype.is_float:
        broadcast.elementwise(layer, lambda x, alpha: te.select(x >= 0.0, x, x * alpha))
        return
    output = node.output.type
    assert isinstance(node.op, activations.Prelu)
    params = activations.prelu_params(node.op, node.inputs[0].type, node.inputs[1].type, output)

    def element(x: te.Expr, alpha: te.Expr) -> te.Expr:
        value = te.bind("centred", centred(x, params.input_zero_point))
        product = value * centred(alpha, params.alpha_zero_point)
        above, below = requantise(value, params.identity), requantise(product, params.product)
        chosen = te.select(value >= 0, above, below)
        low, high = output.dtype.min, output.dtype.max
        return stored(chosen, params.output_zero_point, low, high, output.dtype)

    broadcast.elementwise(layer, element)


def _logistic_of_int16(node: Node) -> Scalar:
    assert isinstance(node.op, activations.Logistic)
    table, scaling = SigmoidTable(), activations.table_scaling(node.op, node.inputs[0].type)
    return lambda x: table.logistic(x, scaling)


def _tanh_of_int16(node: Node) -> Scalar:
    assert isinstance(node.op, activations.Tanh)
    table, scaling = SigmoidTable(), activations.table_scaling(node.op, node.inputs[0].type)
    return lambda x: table.tanh(x, scaling)


def _elu(_op: Operator, x: te.Expr) -> te.Expr:
    # exp(x) - 1 by its half-angle form, which keeps what x has below 1; C99's expm1f is not
    # in every C library.
    half = te.tanh(x * 0.5)
    return te.select(x < 0.0, half * 2.0 / (te.const(1.0, DType.FLOAT32) - half), x)


def _hard_swish(_op: Operator, x: te.Expr) -> te.Expr:
    return x * activate(x + 3.0, attributes.Activation.RELU6) / 6.0


def _logistic(_op: Operator, x: te.Expr) -> te.Expr:
    return te.const(1.0, DType.FLOAT32) / (te.exp(-x) + 1.0)


def _tanh(_op: Operator, x: te.Expr) -> te.Expr:
    return te.tanh(x)


def _gelu(op: Operator, x: te.Expr) -> te.Expr:
    assert isinstance(op, activations.Gelu)
    if op.approximate:
        inner = (x + x * x * x * 0.044715) * math.sqrt(2.0 / math.pi)
        return x * 0.5 * (te.tanh(inner) + 1.0)
    # erfc(-z) is 2 - erfc(z): half of |x| times what is left of the normal distribution behind |x|
    # is missing from a RELU on either side.
    size = te.bind("magnitude", te.abs(x))
    return te.maximum(x, 0.0) - size * 0.5 * erfc_formula.erfc(size * math.sqrt(0.5))


def _gelu_of_int16(node: Node) -> Scalar:
    assert isinstance(node.op, activations.Gelu)
    table = Int16Table(gelu_table_of_int16(node.op, node.inputs[0].type, node.output.type))
    return table.at


FORMULAS: Mapping[type[Operator], Formula] = MappingProxyType(
    {
        activations.Relu: _function(_relu, _relu_of_int16),
        activations.LeakyRelu: _function(_leaky_relu, _leaky_relu_of_int16),
        activations.Prelu: Formula(prelu, 20, broadcast.ROWS),
        activations.Elu: _function(_elu, cost=60),
        activations.HardSwish: _function(_hard_swish),
        activations.Logistic: _function(_logistic, _logistic_of_int16),
        activations.Tanh: _function(_tanh, _tanh_of_int16),
        activations.Gelu: _function(_gelu, _gelu_of_int16, cost=60),
    }
)
