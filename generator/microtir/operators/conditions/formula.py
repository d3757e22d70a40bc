"""Compute comparisons and logical operators, with numpy broadcasting."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from types import MappingProxyType

from microtir import te
from microtir.graph.ir import Node, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common.arithmetic import centred, requantise
from microtir.operators.common.broadcast import ROWS, ScalarFunction, elementwise
from microtir.operators.common.formula import Formula, FormulaContext
from microtir.operators.conditions.definition import (
    LEFT_SHIFT,
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    LogicalAnd,
    LogicalNot,
    LogicalOr,
    NotEqual,
    compared_params,
    is_rescaled,
)

_COMPARISONS: Mapping[type[Operator], ScalarFunction] = MappingProxyType(
    {
        Equal: operator.eq,
        NotEqual: operator.ne,
        Greater: operator.gt,
        GreaterEqual: operator.ge,
        Less: operator.lt,
        LessEqual: operator.le,
    }
)
_LOGICAL: Mapping[type[Operator], ScalarFunction] = MappingProxyType(
    {LogicalAnd: operator.and_, LogicalOr: operator.or_, LogicalNot: operator.invert}
)


def _cost(node: Node) -> int:
    return node.output.type.elements * (30 if is_rescaled(node.op, node.inputs[0].type) else 10)


def compare(layer: FormulaContext) -> None:
    """Give the result of a comparison."""
    node = layer.node
    function = _COMPARISONS[type(node.op)]
    first, second = (tensor.type for tensor in node.inputs)
    op = node.op
    elementwise(layer, lambda a, b: function(_operand(op, a, first), _operand(op, b, second)))


def _operand(op: Operator, value: te.Expr, type_: TensorType) -> te.Expr:
    if not is_rescaled(op, type_):
        return value
    params = compared_params(type_)
    widened = centred(value, params.zero_point) * (1 << LEFT_SHIFT)
    return requantise(widened, params.scale)


def combine(layer: FormulaContext) -> None:
    """Give the result of a logical operator."""
    elementwise(layer, _LOGICAL[type(layer.node.op)])


FORMULAS: Mapping[type[Operator], Formula] = MappingProxyType(
    {
        **dict.fromkeys(_COMPARISONS, Formula(compare, _cost, ROWS)),
        **dict.fromkeys(_LOGICAL, Formula(combine, _cost, ROWS)),
    }
)
