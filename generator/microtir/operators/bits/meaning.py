"""Define in numpy what operators on the bits of integers compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.graph.operator import Operator
from microtir.operators.bits.definition import BitwiseAnd, BitwiseOr, BitwiseXor
from microtir.operators.common.arrays import Meaning


def _binary(function: Callable[[Array, Array], Array]) -> Meaning:
    def meaning(_op: Operator, _node: Node, first: Array, second: Array) -> Array:
        return np.asarray(function(first, second))

    return meaning


MEANINGS: Mapping[type[Operator], Meaning] = MappingProxyType(
    {
        BitwiseAnd: _binary(np.bitwise_and),
        BitwiseOr: _binary(np.bitwise_or),
        BitwiseXor: _binary(np.bitwise_xor),
    }
)
