"""Define in numpy what operators on bits compute."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.bits import definition as bits
from microtir.operators.common.arrays import as_output


def bit_cast(_op: bits.BitCast, node: Node, x: Array) -> Array:
    """Return the same bits as another type; a float of any width is taken as float32."""
    if x.dtype.kind == "f":
        return x.astype(np.float32).view(np.int32)
    return as_output(x.view(np.float32), node.output.type)


def ordered_bits(_op: bits.OrderedBits, _node: Node, x: Array) -> Array:
    """Return integers that are in order as the floats are."""
    stored = x.astype(np.float32).view(np.int32)
    turned = np.where(stored < 0, stored ^ np.int32(np.iinfo(np.int32).max), stored)
    return np.where(np.isnan(x), np.int32(np.iinfo(np.int32).max), turned)
