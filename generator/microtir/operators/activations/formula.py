"""Activations on float32; those on int8 are tables of their meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from microtir import te
from microtir.graph.operator import Operator
from microtir.operators.activations.definition import HardSwish, LeakyRelu, Logistic, Relu, Tanh
from microtir.operators.common.arithmetic import activate
from microtir.operators.common.attributes import Activation
from microtir.operators.common.formula import Formula, FormulaContext
from microtir.tir.dtype import DType


def _of_float(function: Callable[[Operator, te.Expr], te.Expr]) -> Formula:
    """Compute a function of one element; the argument is evaluated once."""

    def compute(layer: FormulaContext) -> None:
        op, x = layer.node.op, layer.image(0)
        layer.rows(lambda *at: function(op, te.bind("value", x.at(*at))))

    return Formula(compute, 20)


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


FORMULAS: Mapping[type[Operator], Formula] = MappingProxyType(
    {
        Relu: _of_float(_relu),
        LeakyRelu: _of_float(_leaky_relu),
        HardSwish: _of_float(_hard_swish),
        Logistic: _of_float(_logistic),
        Tanh: _of_float(_tanh),
    }
)
