"""Name the operators that move elements, or pick of them, whatever the elements are."""

from __future__ import annotations

from microtir.graph.ir import Node, Tensor
from microtir.graph.operator import Operator
from microtir.operators.indexing.definition import Gather, GatherNd
from microtir.operators.movement.definition import (
    Concatenation,
    Pack,
    Reshape,
    Split,
    StridedSlice,
    Transpose,
    Unpack,
)
from microtir.operators.pooling.definition import MaxPool2D
from microtir.operators.ranking.definition import TopK
from microtir.operators.rearrangement.definition import BatchToSpace, DepthToSpace, SpaceToDepth
from microtir.operators.reduction.definition import ArgMax, ArgMin, ReduceMax, ReduceMin
from microtir.operators.repetition.definition import MirrorPad, Tile
from microtir.operators.resize.definition import ResizeNearestNeighbor

_MOVEMENTS = (
    BatchToSpace, Concatenation, DepthToSpace, Gather, GatherNd, MaxPool2D, MirrorPad, Pack,
    ReduceMax, ReduceMin, Reshape, ResizeNearestNeighbor, SpaceToDepth, Split, StridedSlice, Tile,
    TopK, Transpose, Unpack,
)  # fmt: skip


def moves_elements(op: Operator) -> bool:
    """Return whether each element of a result is one of an operand, the greatest in a window, say.

    Padding does not: what it adds is another number in integers of another zero point.
    """
    return isinstance(op, _MOVEMENTS)


def finds_places(op: Operator) -> bool:
    """Return whether the result is where elements are, by their order alone."""
    return isinstance(op, ArgMax | ArgMin)


def moves(node: Node) -> bool:
    """Return whether elements of the outputs are some of an input, or say where one is."""
    return moves_elements(node.op) or finds_places(node.op)


def has_one_scale(tensor: Tensor) -> bool:
    """Return whether integers are quantised with one scale for all of them."""
    quant = tensor.type.quantization
    return quant is not None and not quant.is_per_channel
