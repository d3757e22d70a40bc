"""Define in numpy what the operators that passes make compute."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.streaming.definition import JoinColumns, PlaceColumns, ReadRows, WriteRows


def unchanged(_op: ReadRows | WriteRows | PlaceColumns, _node: Node, x: Array) -> Array:
    """Return the values as they are: rows change hands, and columns their place."""
    return x


def join_columns(_op: JoinColumns, _node: Node, *parts: Array) -> Array:
    """Put the bands of an image side by side."""
    return np.concatenate(parts, axis=2)
