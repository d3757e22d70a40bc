"""Compute comparisons and logical operators, with numpy broadcasting."""

from __future__ import annotations

from microtir import te
from microtir.graph.ir import Node, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common import arithmetic, broadcast, elementwise_formula
from microtir.operators.common import formula as common_formula
from microtir.operators.conditions import definition as conditions


def compare(function: broadcast.ScalarFunction) -> common_formula.Formula:
    """Compare two elements, rescaled where real numbers are compared."""

    def of_node(node: Node) -> broadcast.ScalarFunction:
        op, (first, second) = node.op, (tensor.type for tensor in node.inputs)
        return lambda a, b: function(_operand(op, a, first), _operand(op, b, second))

    return elementwise_formula.by_node(of_node)


def _operand(op: Operator, value: te.Expr, type_: TensorType) -> te.Expr:
    if not conditions.is_rescaled(op, type_):
        return value
    params = conditions.compared_params(type_)
    widened = arithmetic.centred(value, params.zero_point) * (1 << conditions.LEFT_SHIFT)
    return arithmetic.requantise(widened, params.scale)
