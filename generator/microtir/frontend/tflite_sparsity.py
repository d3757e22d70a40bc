"""Write out constants of which a TFLite file stores the elements that are not zero.

The format walks the axes of a tensor in an order of its own, blocks as further axes behind them.
Of each axis either all places are there, or those that lists name: a list of where the places of
each node begin, and the places.  What is stored follows in this order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from microtir.frontend.flatbuffer import FlatbufferTable, ScalarType
from microtir.graph.ir import Array

_INDEX_TYPES = {1: "i4", 2: "u2", 3: "u1"}  # by their numbers in the union of vectors
_MOST_AXES = 16  # of a tensor and of its blocks


@dataclass(frozen=True, slots=True)
class SparseAxis:
    """One axis of a sparse tensor; of a dense one both lists are empty.

    Args:
        size: places of a dense axis.
        begins: for each node of the axes before, where its places begin, and the end.
        places: along the axis.
    """

    size: int
    begins: tuple[int, ...] = ()
    places: tuple[int, ...] = ()
    is_dense: bool = True


@dataclass(frozen=True, slots=True)
class FileSparsity:
    """The form in which the elements of a sparse tensor are stored.

    Args:
        order: in which its axes are walked, those of blocks numbered behind its own.
        blocked: the axis of the tensor that each axis of the blocks is part of.
        axes: in this order.
    """

    order: tuple[int, ...]
    blocked: tuple[int, ...]
    axes: tuple[SparseAxis, ...]


def read_sparsity(table: FlatbufferTable | None, where: str) -> FileSparsity | None:
    """Return what a file says of a sparse tensor; None of one that is stored in full."""
    if table is None:
        return None
    count = table.count(2)
    if count > _MOST_AXES:
        raise table.buffer.malformed(where, f"{count} axes of a sparse tensor are too many")
    return FileSparsity(
        table.numbers(0, "i4"),
        table.numbers(1, "i4"),
        tuple(_axis(table.item(2, index, where), where) for index in range(count)),
    )


def _axis(table: FlatbufferTable, where: str) -> SparseAxis:
    if table.scalar(0, ScalarType.INT8) == 0:
        return SparseAxis(table.scalar(1, ScalarType.INT32))
    lists = []
    for slot in (2, 4):
        kind = _INDEX_TYPES.get(table.scalar(slot, ScalarType.UINT8))
        vector = table.table(slot + 1, where)
        if kind is None or vector is None:
            raise table.buffer.malformed(where, "an axis of a sparse tensor has no entries")
        lists.append(vector.numbers(0, kind))
    return SparseAxis(0, lists[0], lists[1], is_dense=False)


def written_out(sparsity: FileSparsity, shape: tuple[int, ...], values: Array) -> Array | None:
    """Return a tensor in full; None if its axes, places and values contradict each other.

    Args:
        sparsity: how it is stored.
        shape: of the tensor.
        values: that are stored, as a vector.
    """
    rank, blocks = len(shape), len(sparsity.blocked)
    is_sound = (
        sorted(sparsity.order) == list(range(rank + blocks))
        and len(sparsity.axes) == rank + blocks
        and all(0 <= axis < rank for axis in sparsity.blocked)
    )
    places = _walked(sparsity.axes, math.prod(shape)) if is_sound else None
    if places is None or len(places[0]) != len(values):
        return None
    along = dict(zip(sparsity.order, places, strict=True))
    sizes = dict(zip(sparsity.order, (axis.size for axis in sparsity.axes), strict=True))
    indices = [along[axis] for axis in range(rank)]
    for number, axis in enumerate(sparsity.blocked, rank):
        if sizes[number] < 1:
            return None
        indices[axis] = indices[axis] * sizes[number] + along[number]
    pairs = zip(indices, shape, strict=True)
    if not all(((place >= 0) & (place < extent)).all() for place, extent in pairs):
        return None
    data = np.zeros(shape, values.dtype)
    data[tuple(indices)] = values
    return data


def _walked(axes: tuple[SparseAxis, ...], most: int) -> list[npt.NDArray[np.int64]] | None:
    """Return the places of all stored elements, a list for each axis; None if there are none such.

    Args:
        axes: in the order of the walk.
        most: elements that there can be.
    """
    nodes: npt.NDArray[np.int64] = np.zeros(1, np.int64)  # numbers of those of the axes before
    indices: list[npt.NDArray[np.int64]] = []
    for axis in axes:
        if axis.is_dense:
            if not 0 <= axis.size * len(nodes) <= most:
                return None
            counts = np.full(len(nodes), axis.size)
            inner = np.tile(np.arange(axis.size), len(nodes))
            following = np.repeat(nodes, counts) * axis.size + inner
            here = inner
        else:
            begins = np.array(axis.begins, np.int64)
            if not _is_sound(begins, len(axis.places), nodes):
                return None
            counts = begins[nodes + 1] - begins[nodes]
            if counts.sum() > most:
                return None
            following = np.concatenate([*_ranges(begins, nodes), np.zeros(0, np.int64)])
            here = np.array(axis.places, np.int64)[following]
        indices = [np.repeat(places, counts) for places in indices]
        indices.append(here.astype(np.int64))
        nodes = following
    return indices or None


def _is_sound(begins: npt.NDArray[np.int64], count: int, nodes: npt.NDArray[np.int64]) -> bool:
    """Return whether lists of places of an axis begin and end inside of them, for all nodes."""
    is_long_enough = len(begins) > nodes.max(initial=-1) + 1 and len(begins) > 0
    return is_long_enough and bool(
        begins.min() >= 0 and begins.max() <= count and (np.diff(begins) >= 0).all()
    )


def _ranges(
    begins: npt.NDArray[np.int64], nodes: npt.NDArray[np.int64]
) -> Iterator[npt.NDArray[np.int64]]:
    for node in nodes.tolist():
        yield np.arange(begins[node], begins[node + 1])
