"""Define in numpy what the operators that passes make compute."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.graph.operator import Operator
from microtir.operators.common.arrays import Meaning
from microtir.operators.streaming.definition import JoinColumns, PlaceColumns, ReadRows, WriteRows


def unchanged(_op: ReadRows | WriteRows | PlaceColumns, _node: Node, x: Array) -> Array:
    """Return the values as they are: rows change hands, and columns their place."""
    return x


def join_columns(_op: JoinColumns, _node: Node, *parts: Array) -> Array:
    """Put the bands of an image side by side."""
    return np.concatenate(parts, axis=2)


MEANINGS: Mapping[type[Operator], Meaning] = MappingProxyType(
    {
        PlaceColumns: unchanged,
        JoinColumns: join_columns,
        ReadRows: unchanged,
        WriteRows: unchanged,
    }
)
