"""Define in numpy what comparisons of numbers give."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from microtir.graph.ir import Array, Node, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common import arrays, fixed_point
from microtir.operators.conditions import definition as conditions


def compare(function: Callable[[Array, Array], Array]) -> arrays.Meaning:
    """Compare two arrays, rescaled where real numbers are compared."""

    def meaning(op: Operator, node: Node, first: Array, second: Array) -> Array:
        a, b = (_operand(op, x, t.type) for x, t in zip((first, second), node.inputs, strict=True))
        return np.asarray(function(a, b))

    return meaning


def _operand(op: Operator, values: Array, type_: TensorType) -> Array:
    """Return what is compared of an operand, rescaled where real numbers are."""
    if not conditions.is_rescaled(op, type_):
        return values
    params = conditions.compared_params(type_)
    widened = (arrays.stored(values) - params.zero_point) << conditions.LEFT_SHIFT
    return fixed_point.multiply_by_quantized_multiplier(widened, *params.scale)
