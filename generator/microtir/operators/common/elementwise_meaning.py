"""Make meanings of elementwise operators from functions of numpy's arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.graph.operator import Operator
from microtir.operators.common.arrays import Meaning, as_output, stored
from microtir.operators.common.fixed_point import Ints, wrap

Real: TypeAlias = Callable[..., Array]
Stored: TypeAlias = Callable[..., Ints]


def real(function: Real, of_stored: Stored | None = None) -> Meaning:
    """Compute a function of real numbers, rounded once, or one of a stored integer.

    Args:
        function: of an array of doubles for each input, which broadcast; an argument that it has
            no result for gives NaN or an infinity.
        of_stored: given the operator, integers, and the types of input and output; what it gives
            wraps to the output's type.
    """
    return by_operator(lambda _op, *inputs: function(*inputs), of_stored)


def by_operator(function: Real, of_stored: Stored | None = None) -> Meaning:
    """Compute a function as `real` does that is given the operator, too."""

    def meaning(op: Operator, node: Node, *inputs: Array) -> Array:
        source, output = node.inputs[0].type, node.output.type
        if output.dtype.is_float:
            with np.errstate(all="ignore"):
                return as_output(function(op, *(x.astype(np.float64) for x in inputs)), output)
        assert of_stored is not None
        result, bits = of_stored(op, stored(inputs[0]), source, output), output.dtype.bits
        return as_output(result if bits == 64 else wrap(result, bits), output)

    return meaning


def of_stored(function: Callable[[Ints], Ints]) -> Stored:
    """Compute a function of stored integers, whatever they stand for."""
    return lambda _op, x, _source, _output: function(x)


def plain(function: Callable[..., Array]) -> Meaning:
    """Compute a function of the elements as they are."""
    return lambda _op, _node, *inputs: np.asarray(function(*inputs))
