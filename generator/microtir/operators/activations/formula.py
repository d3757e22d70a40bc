"""Compute activations on float32; those on int8 are tables of their meaning."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from microtir import te
from microtir.dtype import DType
from microtir.graph.operator import Operator
from microtir.operators.activations.definition import (
    Gelu,
    HardSwish,
    LeakyRelu,
    Logistic,
    Relu,
    Tanh,
)
from microtir.operators.common.arithmetic import activate
from microtir.operators.common.attributes import Activation
from microtir.operators.common.formula import Formula, FormulaContext


def _of_float(function: Callable[[Operator, te.Expr], te.Expr], cost: int = 20) -> Formula:
    """Compute a function of one element, at a cost each; the argument is evaluated once."""

    def compute(layer: FormulaContext) -> None:
        op, x = layer.node.op, layer.image(0)
        layer.rows(lambda *at: function(op, te.bind("value", x.at(*at))))

    return Formula(compute, cost)


def _relu(op: Operator, x: te.Expr) -> te.Expr:
    assert isinstance(op, Relu)
    return activate(x, op.kind)


def _leaky_relu(op: Operator, x: te.Expr) -> te.Expr:
    assert isinstance(op, LeakyRelu)
    return te.select(x > 0.0, x, x * op.alpha)


def _hard_swish(_op: Operator, x: te.Expr) -> te.Expr:
    return x * activate(x + 3.0, Activation.RELU6) / 6.0


def _logistic(_op: Operator, x: te.Expr) -> te.Expr:
    return te.const(1.0, DType.FLOAT32) / (te.exp(-x) + 1.0)


def _tanh(_op: Operator, x: te.Expr) -> te.Expr:
    return te.tanh(x)


# Coefficients of a polynomial in t = 1 / (1 + z / 2): log(erfc(z) / t) + z^2, fitted at Chebyshev
# nodes for z from 0 to 12; float32 arithmetic adds more than what the fit leaves, 6e-8.
_ERFC_COEFFICIENTS = (
    -1.2654823, 0.9993481, 0.38035414, 0.065232605, -0.09025552,
    0.09432117, -0.9097404, 1.3186527, -0.7501815, 0.157751,
)  # fmt: skip


def _gelu(op: Operator, x: te.Expr) -> te.Expr:
    assert isinstance(op, Gelu)
    if op.approximate:
        inner = (x + x * x * x * 0.044715) * math.sqrt(2.0 / math.pi)
        return x * 0.5 * (te.tanh(inner) + 1.0)
    # erfc(-z) is 2 - erfc(z): half of |x| times what is left of the normal distribution behind |x|
    # is missing from a RELU on either side.
    size = te.bind("magnitude", te.abs(x))
    return te.maximum(x, 0.0) - size * 0.5 * _erfc(size * math.sqrt(0.5))


def _erfc(z: te.Expr) -> te.Expr:
    """Return erfc(z) of z >= 0, which C libraries of small targets leave out."""
    z = te.bind("z", z)
    t = te.bind("t", te.const(1.0, DType.FLOAT32) / (z * 0.5 + 1.0))
    polynomial = te.const(_ERFC_COEFFICIENTS[-1], DType.FLOAT32)
    for coefficient in reversed(_ERFC_COEFFICIENTS[:-1]):
        polynomial = polynomial * t + coefficient
    return t * te.exp(polynomial - z * z)


FORMULAS: Mapping[type[Operator], Formula] = MappingProxyType(
    {
        Relu: _of_float(_relu),
        LeakyRelu: _of_float(_leaky_relu),
        HardSwish: _of_float(_hard_swish),
        Logistic: _of_float(_logistic),
        Tanh: _of_float(_tanh),
        Gelu: _of_float(_gelu, 60),
    }
)
