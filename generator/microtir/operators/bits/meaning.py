"""Define in numpy what operators on bits compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.graph.operator import Operator
from microtir.operators.bits.definition import (
    BitCast,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    OrderedBits,
)
from microtir.operators.common.arrays import Meaning, as_output


def _binary(function: Callable[[Array, Array], Array]) -> Meaning:
    def meaning(_op: Operator, _node: Node, first: Array, second: Array) -> Array:
        return np.asarray(function(first, second))

    return meaning


def bit_cast(_op: BitCast, node: Node, x: Array) -> Array:
    """Return the same bits as another type; a float of any width is taken as float32."""
    if x.dtype.kind == "f":
        return x.astype(np.float32).view(np.int32)
    return as_output(x.view(np.float32), node.output.type)


def ordered_bits(_op: OrderedBits, _node: Node, x: Array) -> Array:
    """Return integers that are in order as the floats are."""
    bits = x.astype(np.float32).view(np.int32)
    turned = np.where(bits < 0, bits ^ np.int32(np.iinfo(np.int32).max), bits)
    return np.where(np.isnan(x), np.int32(np.iinfo(np.int32).max), turned)


MEANINGS: Mapping[type[Operator], Meaning] = MappingProxyType(
    {
        BitwiseAnd: _binary(np.bitwise_and),
        BitwiseOr: _binary(np.bitwise_or),
        BitwiseXor: _binary(np.bitwise_xor),
        BitCast: bit_cast,
        OrderedBits: ordered_bits,
    }
)
