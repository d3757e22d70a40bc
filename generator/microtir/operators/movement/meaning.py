"""Define in numpy what operators that move elements compute; they take any scalar type."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.common.arrays import part_from
from microtir.operators.movement import definition as movement


def pad(op: movement.Pad, _node: Node, x: Array, value: Array | None = None) -> Array:
    """Compute PAD and PADV2."""
    margins = tuple(zip(op.before, op.after, strict=True))
    if not margins:
        return np.array(x)  # a scalar, which numpy cannot pad
    fill = np.array(op.value).astype(x.dtype) if value is None else value.reshape(())
    return np.pad(x, margins, constant_values=fill)


def concatenation(op: movement.Concatenation, _node: Node, *parts: Array) -> Array:
    """Compute CONCATENATION."""
    return np.concatenate(parts, axis=op.axis)


def reshape(_op: movement.Reshape, node: Node, x: Array) -> Array:
    """Compute RESHAPE, SQUEEZE and EXPAND_DIMS."""
    return x.reshape(node.output.shape)


def relabel(_op: movement.Relabel, _node: Node, x: Array) -> Array:
    """Give stored values back as they are."""
    return np.array(x)


def transpose(op: movement.Transpose, _node: Node, x: Array) -> Array:
    """Compute TRANSPOSE."""
    moved: Array = x.transpose(op.permutation).copy()
    return moved


def pack(op: movement.Pack, _node: Node, *parts: Array) -> Array:
    """Compute PACK."""
    return np.stack(parts, axis=op.axis)


def split(op: movement.Split, node: Node, x: Array) -> tuple[Array, ...]:
    """Compute SPLIT and SPLIT_V."""
    ends = np.cumsum([tensor.shape[op.axis] for tensor in node.outputs])
    return tuple(np.split(x, ends[:-1], axis=op.axis))


def unpack(op: movement.Unpack, _node: Node, x: Array) -> tuple[Array, ...]:
    """Compute UNPACK."""
    return tuple(np.moveaxis(x, op.axis, 0))


def strided_slice(
    op: movement.StridedSlice, node: Node, x: Array, begin: Array | None = None
) -> Array:
    """Compute SLICE, STRIDED_SLICE and REVERSE_V2."""
    if begin is not None:
        part = np.array(x[part_from(x, op.extent, begin, from_end=op.from_end)])
        return part.reshape(node.output.shape)
    axes = zip(op.begin, op.strides, op.extent, strict=True)
    indices = [first + stride * np.arange(extent) for first, stride, extent in axes]
    return np.asarray(x[np.ix_(*indices)]).reshape(node.output.shape)
