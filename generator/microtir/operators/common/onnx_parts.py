"""Take parts of tensors, and move axes, for the readers of several families."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Tensor
from microtir.operators.common.onnx_operands import OnnxNode
from microtir.operators.common.onnx_values import RowCount
from microtir.operators.common.shapes import Shape
from microtir.operators.movement import definition as movement


def box(node: OnnxNode, x: Tensor, begin: Sequence[int], extent: Sequence[int]) -> Tensor:
    """Return the elements from a place on, along each axis as many as an extent says."""
    return strided(node, x, begin, (1,) * len(x.shape), extent)


def strided(
    node: OnnxNode, x: Tensor, begin: Sequence[int], strides: Sequence[int], extent: Sequence[int]
) -> Tensor:
    """Return the elements begin + i * stride; parts that hold nothing are constants."""
    shape = tuple(extent)
    if shape == x.shape and set(strides) <= {1}:
        return x
    if 0 in shape:
        return filled(node, shape, 0, x.dtype)
    # The shape is said: the operator could leave out axes of one element.
    return node.emit(movement.StridedSlice(tuple(begin), tuple(strides), shape), x, shape=shape)


def along(node: OnnxNode, x: Tensor, axis: int, begin: int, size: int, stride: int = 1) -> Tensor:
    """Return a part of one axis."""
    begins, strides, extent = [0] * len(x.shape), [1] * len(x.shape), list(x.shape)
    begins[axis], strides[axis], extent[axis] = begin, stride, size
    return strided(node, x, begins, strides, extent)


def padded(
    node: OnnxNode, x: Tensor, axis: int, before: int, after: int, value: float = 0.0
) -> Tensor:
    """Return a tensor with one axis made longer at both ends."""
    if not before and not after:
        return x
    first, last = ((0,) * axis + (n,) + (0,) * (len(x.shape) - axis - 1) for n in (before, after))
    return node.emit(movement.Pad(first, last, value), x)


def backwards(node: OnnxNode, x: Tensor, axis: int) -> Tensor:
    """Return a tensor with one axis in reverse."""
    size = x.shape[axis]
    return x if size == 1 else along(node, x, axis, size - 1, size, -1)


def joined(node: OnnxNode, parts: Sequence[Tensor], axis: int) -> Tensor:
    """Return tensors one behind the other along an axis; those that hold nothing are left out."""
    filled = [x for x in parts if x.type.elements] or [parts[0]]
    return filled[0] if len(filled) == 1 else node.emit(movement.Concatenation(axis), *filled)


def stacked(node: OnnxNode, parts: Sequence[Tensor], axis: int) -> Tensor:
    """Return tensors beside each other along a new axis."""
    shape = parts[0].shape
    at = node.axis(axis, len(shape) + 1)
    return joined(node, [reshaped(node, x, *shape[:at], 1, *shape[at:]) for x in parts], at)


def reshaped(node: OnnxNode, x: Tensor, *shape: int) -> Tensor:
    """Return the same elements in another shape."""
    return x if x.shape == shape else node.emit(movement.Reshape(), x, shape=shape)


def transposed(node: OnnxNode, x: Tensor, order: Sequence[int]) -> Tensor:
    """Return a tensor with its axes in another order."""
    return x if list(order) == sorted(order) else node.emit(movement.Transpose(tuple(order)), x)


def to_last(node: OnnxNode, x: Tensor, axis: int) -> Tensor:
    """Return a tensor with one axis moved to the end."""
    others = [n for n in range(len(x.shape)) if n != axis]
    return transposed(node, x, (*others, axis))


def from_last(node: OnnxNode, x: Tensor, axis: int) -> Tensor:
    """Return a tensor with its last axis moved to a place: undo `to_last`."""
    order = list(range(len(x.shape) - 1))
    order.insert(axis, len(x.shape) - 1)
    return transposed(node, x, order)


def from_first(node: OnnxNode, x: Tensor, axis: int) -> Tensor:
    """Return a tensor with its first axis moved to a place."""
    order = list(range(1, len(x.shape)))
    order.insert(node.axis(axis, len(x.shape)), 0)
    return transposed(node, x, order)


def with_row_count(node: OnnxNode, rows: Tensor, axis: int, count: Tensor) -> Tensor:
    """Return rows of which some are in use; if their number is known, these alone.

    Args:
        node: which is read.
        rows: as many as there may be.
        axis: which counts them.
        count: how many are in use, int32 of shape (1,).
    """
    if count.data is not None:
        return along(node, rows, axis, 0, int(count.data[0]))
    node.emitter.count_rows(rows, RowCount(axis, count))
    return rows


def numbers(node: OnnxNode, *shape: int, first: int = 0) -> Tensor:
    """Return a constant of int32: as many numbers from a first one on as the shape holds.

    Raises:
        ModelFileError: there is no room for so many.
    """
    node.check_room(*shape)
    return int32s(node, np.arange(first, first + math.prod(shape)).reshape(shape))


def filled(node: OnnxNode, shape: Shape, value: float, dtype: DType = DType.FLOAT32) -> Tensor:
    """Return a constant whose elements are all one value.

    Raises:
        ModelFileError: there is no room for so many.
    """
    node.check_room(*shape)
    return node.constant(np.full(shape, value, dtype.value))


def int32s(node: OnnxNode, values: Array) -> Tensor:
    """Return a constant of indices."""
    return node.constant(np.asarray(values).astype(DType.INT32.value))
