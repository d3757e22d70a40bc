"""Compute activations on float32 and int16; those on int8 are tables of their meaning."""

from __future__ import annotations

import math

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.activations import definition as activations
from microtir.operators.activations.gelu_table import gelu_table_of_int16
from microtir.operators.common import attributes, broadcast, erfc_formula
from microtir.operators.common.arithmetic import (
    RoundedTwice,
    activate,
    centred,
    requantise,
    stored,
    stored_raised,
    wide,
)
from microtir.operators.common.elementwise_formula import Scalar
from microtir.operators.common.lookup_formula import Int16Table
from microtir.operators.common.sigmoid_table_formula import SigmoidTable


def relu(node: Node) -> Scalar:
    """Return RELU, RELU6 or RELU_N1_TO_1 of float32."""
    op = node.attributes(activations.Relu)
    return lambda x: activate(x, op.kind)


def leaky_relu(node: Node) -> Scalar:
    """Return LEAKY_RELU of float32."""
    op = node.attributes(activations.LeakyRelu)
    return lambda x: te.select(x > 0.0, x, x * op.alpha)


def relu_of_int16(node: Node) -> Scalar:
    """Return RELU of int16."""
    op, source, output = node.attributes(activations.Relu), node.inputs[0].type, node.output.type
    params = activations.relu_params(op, source, output)

    def function(x: te.Expr) -> te.Expr:
        value = wide(x)
        if params.multiplier is not None:
            value = requantise(value - params.input_zero_point, params.multiplier)
            value = te.bind("scaled", value + params.output_zero_point)
        return te.clamp(value, params.activation_min, params.activation_max)

    return function


def leaky_relu_of_int16(node: Node) -> Scalar:
    """Return LEAKY_RELU of int16."""
    op = node.attributes(activations.LeakyRelu)
    source, output = node.inputs[0].type, node.output.type
    params = activations.leaky_relu_params(op, source, output)
    sign = -1 if params.alpha.multiplier < 0 else 1
    slope = params.alpha._replace(multiplier=abs(params.alpha.multiplier))

    def function(x: te.Expr) -> te.Expr:
        value = te.bind("centred", centred(x, params.input_zero_point))
        above, below = requantise(value, params.identity), requantise(value, slope) * sign
        scaled = te.select(value >= 0, above, below) + params.output_zero_point
        return te.clamp(te.bind("scaled", scaled), params.minimum, params.maximum)

    return function


def prelu(node: Node) -> broadcast.ScalarFunction:
    """Return PRELU of float32 or integers."""
    if node.output.dtype.is_float:
        return lambda x, alpha: te.select(x >= 0.0, x, x * alpha)
    output = node.output.type
    op = node.attributes(activations.Prelu)
    params = activations.prelu_params(op, node.inputs[0].type, node.inputs[1].type, output)
    if output.dtype is DType.INT8:
        zero = params.output_zero_point
        above = RoundedTwice.of(params.identity, _LARGEST, zero, is_positive=True)
        below = RoundedTwice.of(params.product, _LARGEST**2, zero)
        if above is not None and below is not None:
            return _short_prelu(params, above, below)

    def element(x: te.Expr, alpha: te.Expr) -> te.Expr:
        value = te.bind("centred", centred(x, params.input_zero_point))
        product = value * centred(alpha, params.alpha_zero_point)
        above, below = requantise(value, params.identity), requantise(product, params.product)
        chosen = te.select(value >= 0, above, below)
        low, high = output.dtype.min, output.dtype.max
        return stored(chosen, params.output_zero_point, low, high, output.dtype)

    return element


_LARGEST = 255
"""Magnitude of a centred int8, at most."""


def _short_prelu(
    params: activations.PreluParams, above: RoundedTwice, below: RoundedTwice
) -> broadcast.ScalarFunction:
    """Return PRELU of int8, which rescales what is not negative otherwise than what is."""

    def element(x: te.Expr, alpha: te.Expr) -> te.Expr:
        value = te.bind("centred", centred(x, params.input_zero_point))
        slope = centred(alpha, params.alpha_zero_point) * below.scale
        chosen = te.select(
            value >= 0, above.raised(value * above.scale), below.raised(value * slope)
        )
        return stored_raised(chosen, DType.INT8.min, DType.INT8.max)

    return element


def logistic_of_int16(node: Node) -> Scalar:
    """Return LOGISTIC of int16."""
    scaling = activations.table_scaling(node.attributes(activations.Logistic), node.inputs[0].type)
    table = SigmoidTable()
    return lambda x: table.logistic(x, scaling)


def tanh_of_int16(node: Node) -> Scalar:
    """Return TANH of int16."""
    scaling = activations.table_scaling(node.attributes(activations.Tanh), node.inputs[0].type)
    table = SigmoidTable()
    return lambda x: table.tanh(x, scaling)


def elu(x: te.Expr) -> te.Expr:
    """Return ELU of float32."""
    # exp(x) - 1 by its half-angle form, which keeps what x has below 1; C99's expm1f is not
    # in every C library.
    half = te.tanh(x * 0.5)
    return te.select(x < 0.0, half * 2.0 / (te.const(1.0, DType.FLOAT32) - half), x)


def hard_swish(x: te.Expr) -> te.Expr:
    """Return HARD_SWISH of float32."""
    return x * activate(x + 3.0, attributes.Activation.RELU6) / 6.0


def logistic(x: te.Expr) -> te.Expr:
    """Return LOGISTIC of float32."""
    return te.const(1.0, DType.FLOAT32) / (te.exp(-x) + 1.0)


def gelu(node: Node) -> Scalar:
    """Return GELU of float32."""
    return _gelu_by_tanh if node.attributes(activations.Gelu).approximate else _gelu


def _gelu_by_tanh(x: te.Expr) -> te.Expr:
    inner = (x + x * x * x * 0.044715) * math.sqrt(2.0 / math.pi)
    return x * 0.5 * (te.tanh(inner) + 1.0)


def _gelu(x: te.Expr) -> te.Expr:
    # erfc(-z) is 2 - erfc(z): half of |x| times what is left of the normal distribution behind |x|
    # is missing from a RELU on either side.
    size = te.bind("magnitude", te.abs(x))
    return te.maximum(x, 0.0) - size * 0.5 * erfc_formula.erfc(size * math.sqrt(0.5))


def gelu_of_int16(node: Node) -> Scalar:
    """Return GELU of int16."""
    op = node.attributes(activations.Gelu)
    table = Int16Table(gelu_table_of_int16(op, node.inputs[0].type, node.output.type))
    return table.at
