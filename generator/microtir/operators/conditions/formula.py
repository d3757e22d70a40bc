"""Compute comparisons and logical operators, with numpy broadcasting."""

from __future__ import annotations

from microtir import te
from microtir.graph.ir import Node, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common.arithmetic import centred, requantise
from microtir.operators.common.broadcast import ScalarFunction
from microtir.operators.common.elementwise_formula import by_node
from microtir.operators.common.formula import Formula
from microtir.operators.conditions import definition as conditions


def _cost(node: Node) -> int:
    is_rescaled = conditions.is_rescaled(node.op, node.inputs[0].type)
    return node.output.type.elements * (30 if is_rescaled else 10)


def compare(function: ScalarFunction) -> Formula:
    """Compare two elements, rescaled where real numbers are compared."""

    def of_node(node: Node) -> ScalarFunction:
        op, (first, second) = node.op, (tensor.type for tensor in node.inputs)
        return lambda a, b: function(_operand(op, a, first), _operand(op, b, second))

    return by_node(of_node, _cost)


def _operand(op: Operator, value: te.Expr, type_: TensorType) -> te.Expr:
    if not conditions.is_rescaled(op, type_):
        return value
    params = conditions.compared_params(type_)
    widened = centred(value, params.zero_point) * (1 << conditions.LEFT_SHIFT)
    return requantise(widened, params.scale)
