"""Define in numpy what operators that move elements compute; they take any scalar type."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.graph.operator import Operator
from microtir.operators.common.arrays import Meaning
from microtir.operators.movement.definition import (
    Concatenation,
    Pad,
    Reshape,
    Split,
    StridedSlice,
    Transpose,
)


def pad(op: Pad, _node: Node, x: Array) -> Array:
    """Compute PAD and PADV2."""
    margins = tuple(zip(op.before, op.after, strict=True))
    if not margins:
        return np.array(x)  # a scalar, which numpy cannot pad
    return np.pad(x, margins, constant_values=np.array(op.value).astype(x.dtype))


def concatenation(op: Concatenation, _node: Node, *parts: Array) -> Array:
    """Compute CONCATENATION."""
    return np.concatenate(parts, axis=op.axis)


def reshape(_op: Reshape, node: Node, x: Array) -> Array:
    """Compute RESHAPE, SQUEEZE and EXPAND_DIMS."""
    return x.reshape(node.output.shape)


def transpose(op: Transpose, _node: Node, x: Array) -> Array:
    """Compute TRANSPOSE."""
    moved: Array = x.transpose(op.permutation).copy()
    return moved


def split(op: Split, node: Node, x: Array) -> tuple[Array, ...]:
    """Compute SPLIT."""
    return tuple(np.split(x, len(node.outputs), axis=op.axis))


def strided_slice(op: StridedSlice, node: Node, x: Array) -> Array:
    """Compute SLICE and STRIDED_SLICE."""
    axes = zip(op.begin, op.strides, op.extent, strict=True)
    indices = [begin + stride * np.arange(extent) for begin, stride, extent in axes]
    return np.asarray(x[np.ix_(*indices)]).reshape(node.output.shape)


MEANINGS: Mapping[type[Operator], Meaning] = MappingProxyType(
    {
        Pad: pad,
        Concatenation: concatenation,
        Reshape: reshape,
        Transpose: transpose,
        Split: split,
        StridedSlice: strided_slice,
    }
)
