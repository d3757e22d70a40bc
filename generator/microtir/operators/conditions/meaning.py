"""Define in numpy, to the bit, what comparisons and logical operators compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from microtir.graph.ir import Array, Node, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common.arrays import Meaning, stored
from microtir.operators.common.fixed_point import multiply_by_quantized_multiplier
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

_Function: TypeAlias = Callable[[Array, Array], Array]


def _compare(function: _Function) -> Meaning:
    def compare(op: Operator, node: Node, first: Array, second: Array) -> Array:
        a, b = (_operand(op, x, t.type) for x, t in zip((first, second), node.inputs, strict=True))
        return np.asarray(function(a, b))

    return compare


def _operand(op: Operator, values: Array, type_: TensorType) -> Array:
    """Return what is compared of an operand, rescaled where real numbers are."""
    if not is_rescaled(op, type_):
        return values
    params = compared_params(type_)
    widened = (stored(values) - params.zero_point) << LEFT_SHIFT
    return multiply_by_quantized_multiplier(widened, *params.scale)


def _combine(function: _Function) -> Meaning:
    return lambda _op, _node, first, second: np.asarray(function(first, second))


def logical_not(_op: LogicalNot, _node: Node, values: Array) -> Array:
    """Compute LOGICAL_NOT."""
    return np.logical_not(values)


MEANINGS: Mapping[type[Operator], Meaning] = MappingProxyType(
    {
        Equal: _compare(np.equal),
        NotEqual: _compare(np.not_equal),
        Greater: _compare(np.greater),
        GreaterEqual: _compare(np.greater_equal),
        Less: _compare(np.less),
        LessEqual: _compare(np.less_equal),
        LogicalAnd: _combine(np.logical_and),
        LogicalOr: _combine(np.logical_or),
        LogicalNot: logical_not,
    }
)
