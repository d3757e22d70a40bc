"""Define in numpy what operators compute that keep something from one run to the next."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.state.definition import Assign, JoinRows, KeepRows, TakeRows


def assign(_op: Assign, _node: Node, x: Array) -> Array:
    """Return the value as it is."""
    return x


def rows_from(op: KeepRows | TakeRows, node: Node, x: Array) -> Array:
    """Return as many rows as the output has."""
    stop = op.first + node.output.shape[op.axis]
    return x[(slice(None),) * op.axis + (slice(op.first, stop),)]


def join_rows(op: JoinRows, _node: Node, *parts: Array) -> Array:
    """Put the rows of the inputs one after the other."""
    return np.concatenate(parts, axis=op.axis)
