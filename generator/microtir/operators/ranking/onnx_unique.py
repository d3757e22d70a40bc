"""Read ONNX's Unique: of known values at once, of others by their order.

Equal values stand beside each other once they are sorted, so that the first of each is where a
value differs from the one before it, and what is asked of each value is gathered there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Tensor, TensorType
from microtir.operators.common.onnx_arithmetic import choose, equal, less, sub
from microtir.operators.common.onnx_operands import OnnxNode
from microtir.operators.common.onnx_parts import (
    along,
    int32s,
    joined,
    numbers,
    reshaped,
    with_row_count,
)
from microtir.operators.common.onnx_types import cast, emit_wide
from microtir.operators.conditions.definition import NotEqual
from microtir.operators.cumulation.definition import Cumsum
from microtir.operators.indexing.definition import Gather, ScatterNd, TruePlaces

Sort = Callable[[OnnxNode, Tensor], "tuple[Tensor, Tensor]"]


def known_unique(node: OnnxNode) -> tuple[Tensor, ...]:
    """Return the distinct of known values: sorted, or in the order of their first occurrences."""
    values = node.known(0, "the values whose number the shape depends on")
    axis = None
    if node.has("axis"):
        axis = node.axis(node.integer("axis"), values.ndim)
    unique, first, inverse, counts = np.unique(
        values, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    if not node.integer("sorted", 1):
        order = np.argsort(first)
        rank = np.argsort(order)
        unique = unique[order] if axis is None else np.take(unique, order, axis)
        first, inverse, counts = first[order], rank[inverse.reshape(-1)], counts[order]
    numbers = (first, inverse.reshape(-1), counts)
    return (node.constant(unique), *(node.constant(n.astype(np.int64)) for n in numbers))


def computed_unique(node: OnnxNode, sort: Sort) -> tuple[Tensor, ...]:
    """Return the distinct of values that the model computes: as many as there may be, and a count.

    Args:
        node: of the file.
        sort: returns the values of a line from the smallest to the largest, of equal ones the
            first of the line first, and where they were.
    """
    x = node.input(0)
    if node.has("axis") and len(x.shape) != 1:
        raise node.unsupported(
            "the model computes the input of Unique with an axis",
            "single values (no 'axis'), or values that are known",
            "export the model without the axis, or compute it in the application",
        )
    if node.has("axis"):
        node.axis(node.integer("axis"), 1)
    line = reshaped(node, x, x.type.elements)
    groups = _groups(node, line, sort)
    is_sorted = node.integer("sorted", 1)
    row_groups, count = _in_order(node, groups) if is_sorted else _as_they_came(node, groups)
    first, inverse, counts = (cast(node, numbers, DType.INT64) for numbers in row_groups)
    values = node.emit(Gather(0), line, row_groups[0])
    outputs = (with_row_count(node, rows, 0, count) for rows in (values, first, counts))
    values, first, counts = outputs
    return values, first, inverse, counts


@dataclass(frozen=True, slots=True)
class _Groups:
    """Sorted values, equal ones beside each other.

    Args:
        places: of all, in the line.
        numbers: of the groups that they are in.
        begins: where each group begins among all, zeros behind those.
        count: how many groups there are.
    """

    places: Tensor
    numbers: Tensor
    begins: Tensor
    count: Tensor

    @property
    def size(self) -> int:
        return self.places.shape[0]


def _groups(node: OnnxNode, line: Tensor, sort: Sort) -> _Groups:
    ordered, places = sort(node, line)
    size = line.shape[0]
    parts = [node.constant(np.array([True]))]
    if size > 1:
        neighbours = (along(node, ordered, 0, at, size - 1) for at in (1, 0))
        parts.append(emit_wide(node, NotEqual(), *neighbours, dtype=DType.BOOL))
    is_first = joined(node, parts, 0)
    begins, count = _places(node, is_first)
    return _Groups(places, _numbers(node, is_first), begins, count)


def _places(node: OnnxNode, flags: Tensor) -> tuple[Tensor, Tensor]:
    types = (TensorType((), DType.INT32),) * 2
    places, count = node.emitter.emit(TruePlaces(), (flags,), types)
    return places, count


def _numbers(node: OnnxNode, flags: Tensor) -> Tensor:
    """Return how many flags are set up to each, less one."""
    return sub(node, node.emit(Cumsum(0), cast(node, flags, DType.INT32)), 1)


def _put_back(node: OnnxNode, groups: _Groups, values: Tensor) -> Tensor:
    """Return a number of each sorted value where that was in the line."""
    at = reshaped(node, groups.places, groups.size, 1)
    return node.emit(ScatterNd((groups.size,)), values, at)


def _in_order(node: OnnxNode, groups: _Groups) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
    """Return first places, the groups of all and their sizes, by value; and the count."""
    size, begins = groups.size, groups.begins
    rest = [along(node, begins, 0, 1, size - 1)] if size > 1 else []
    following = joined(node, (*rest, int32s(node, np.zeros(1))), 0)
    has_next = less(node, numbers(node, size, first=1), groups.count)
    counts = sub(node, choose(node, has_next, following, size), begins)
    first = node.emit(Gather(0), groups.places, begins)
    return (first, _put_back(node, groups, groups.numbers), counts), groups.count


def _as_they_came(node: OnnxNode, groups: _Groups) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
    """Return the same in the order of the line."""
    (first, by_value, counts), _ = _in_order(node, groups)
    # Of each value of the line, where the first that is equal to it stands.
    leaders = _put_back(node, groups, node.emit(Gather(0), first, groups.numbers))
    is_first = equal(node, leaders, numbers(node, groups.size))
    places, count = _places(node, is_first)
    inverse = node.emit(Gather(0), _numbers(node, is_first), leaders)
    sizes = node.emit(Gather(0), counts, node.emit(Gather(0), by_value, places))
    return (places, inverse, sizes), count
