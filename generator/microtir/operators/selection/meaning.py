"""Define in numpy what operators give that pick by conditions."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.selection.definition import Select, Where, condition_shape


def select(_op: Select, node: Node, condition: Array, then: Array, otherwise: Array) -> Array:
    """Compute SELECT and SELECT_V2."""
    return np.where(condition.reshape(condition_shape(node)), then, otherwise)


def where(_op: Where, _node: Node, condition: Array) -> Array:
    """Compute WHERE of one input."""
    return np.argwhere(condition).astype(np.int64)
