"""Make meanings of elementwise operators from functions of numpy's arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from microtir.graph.ir import Array, Node, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common import arrays, fixed_point

Real: TypeAlias = Callable[[arrays.Doubles], Array]
Stored: TypeAlias = Callable[[Operator, fixed_point.Ints, TensorType, TensorType], fixed_point.Ints]


def real(function: Real, of_stored: Stored | None = None) -> arrays.Meaning:
    """Compute a function of a real number, rounded once, or one of a stored integer.

    Args:
        function: of real numbers; an argument that it has no result for gives NaN or an infinity.
        of_stored: given the operator, integers, and the types of input and output; what it gives
            wraps to the output's type.
    """

    def meaning(op: Operator, node: Node, x: Array) -> Array:
        source, output = node.inputs[0].type, node.output.type
        if output.dtype.is_float:
            with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
                return arrays.as_output(function(x.astype(np.float64)), output)
        assert of_stored is not None
        result, bits = of_stored(op, arrays.stored(x), source, output), output.dtype.bits
        return arrays.as_output(result if bits == 64 else fixed_point.wrap(result, bits), output)

    return meaning


def of_stored(function: Callable[[fixed_point.Ints], fixed_point.Ints]) -> Stored:
    """Compute a function of stored integers, whatever they stand for."""
    return lambda _op, x, _source, _output: function(x)


def plain(function: Callable[..., Array]) -> arrays.Meaning:
    """Compute a function of the elements as they are."""
    return lambda _op, _node, *inputs: np.asarray(function(*inputs))
