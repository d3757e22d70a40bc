"""Name the operators that move elements, or pick of them, whatever the elements are."""

from __future__ import annotations

from microtir.graph.operator import Operator
from microtir.operators.indexing.definition import Gather
from microtir.operators.movement.definition import (
    Concatenation,
    Reshape,
    Split,
    StridedSlice,
    Transpose,
)
from microtir.operators.pooling.definition import MaxPool2D
from microtir.operators.rearrangement.definition import DepthToSpace, SpaceToDepth
from microtir.operators.resize.definition import ResizeNearestNeighbor

_MOVEMENTS = (
    Concatenation, DepthToSpace, Gather, MaxPool2D, Reshape, ResizeNearestNeighbor, SpaceToDepth,
    Split, StridedSlice, Transpose,
)  # fmt: skip


def moves_elements(op: Operator) -> bool:
    """Return whether each element of a result is one of an operand, the greatest in a window, say.

    Padding does not: what it adds is another number in integers of another zero point.
    """
    return isinstance(op, _MOVEMENTS)
