"""Define in numpy what operators compute that compute shapes."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.common.arrays import as_output
from microtir.operators.shapes.definition import BroadcastArgs, Range, RankOf, ShapeOf


def shape_of(_op: ShapeOf, node: Node, x: Array) -> Array:
    """Compute SHAPE."""
    return as_output(np.array(x.shape, np.int64), node.output.type)


def rank_of(_op: RankOf, _node: Node, x: Array) -> Array:
    """Compute RANK."""
    return np.array(x.ndim, np.int32)


def broadcast_args(_op: BroadcastArgs, node: Node, first: Array, second: Array) -> Array:
    """Compute BROADCAST_ARGS."""
    a, b = (np.ones(node.output.shape, first.dtype) for _ in range(2))
    a[len(a) - len(first) :] = first
    b[len(b) - len(second) :] = second
    return np.where(a == 1, b, a)


def range_(op: Range, _node: Node, start: Array, delta: Array) -> Array:
    """Compute RANGE: each number is the one before and the delta, which floats round."""
    result = np.full(op.count, delta.reshape(()))
    result[0] = start.reshape(())
    return np.add.accumulate(result, dtype=start.dtype)
