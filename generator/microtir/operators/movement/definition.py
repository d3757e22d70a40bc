"""Define operators that move elements without computing by their attributes and rules."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common.shapes import Shape, require
from microtir.operators.common.tflite_operands import MANY
from microtir.operators.definition import moving


@dataclass(frozen=True, slots=True)
class Pad(Operator):
    """PAD and PADV2. The new elements hold `value`, as stored (the zero point for PAD)."""

    name: ClassVar[str] = "pad"
    before: tuple[int, ...] = ()  # per axis
    after: tuple[int, ...] = ()
    value: float = 0.0  # an integral number for integer tensors


@dataclass(frozen=True, slots=True)
class Concatenation(Operator):
    """Along `axis` (non-negative); never rescales."""

    name: ClassVar[str] = "concatenation"
    axis: int = 0


@dataclass(frozen=True, slots=True)
class Reshape(Operator):
    """RESHAPE, SQUEEZE and EXPAND_DIMS: same elements, the shape of the output tensor."""

    name: ClassVar[str] = "reshape"


@dataclass(frozen=True, slots=True)
class Transpose(Operator):
    """Axis i of the output is axis `permutation[i]` of the input."""

    name: ClassVar[str] = "transpose"
    permutation: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Split(Operator):
    """Equal parts along `axis` (non-negative), one per output."""

    name: ClassVar[str] = "split"
    axis: int = 0


@dataclass(frozen=True, slots=True)
class StridedSlice(Operator):
    """SLICE and STRIDED_SLICE with masks resolved: element i of an axis is begin + i * stride.

    Axes that a shrink mask drops have extent 1 here; the output tensor's shape leaves them out.
    """

    name: ClassVar[str] = "strided_slice"
    begin: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()  # may be negative
    extent: tuple[int, ...] = ()  # elements taken per input axis


def _pad_shape(node: Node) -> tuple[Shape, ...]:
    op, source = node.op, node.inputs[0]
    assert isinstance(op, Pad)
    require(
        len(op.before) == len(op.after) == len(source.shape)
        and min((*op.before, *op.after), default=0) >= 0,
        f"paddings {op.before} and {op.after} for the shape {source.shape}",
        "a number from 0 for each side of each dimension",
    )
    if not source.dtype.is_float:
        in_range = source.dtype.min <= op.value <= source.dtype.max
        require(
            in_range and float(op.value).is_integer(),
            f"the value {op.value}",
            f"a {source.dtype.value}",
        )
    axes = zip(op.before, source.shape, op.after, strict=True)
    return (tuple(before + extent + after for before, extent, after in axes),)


def _concatenation_shape(node: Node) -> tuple[Shape, ...]:
    assert isinstance(node.op, Concatenation)
    parts, axis = [tensor.shape for tensor in node.inputs], node.op.axis
    first = parts[0]
    require(0 <= axis < len(first), f"axis {axis} of the shape {first}")
    rest = {(shape[:axis], shape[axis + 1 :]) for shape in parts}
    require(
        len(rest) == 1, f"shapes {parts} along axis {axis}", "shapes that differ in that axis only"
    )
    return ((*first[:axis], sum(shape[axis] for shape in parts), *first[axis + 1 :]),)


def _reshape_shape(node: Node) -> tuple[Shape, ...]:
    elements, shape = node.inputs[0].type.elements, node.output.shape
    require(math.prod(shape) == elements, f"{elements} elements to the shape {shape}")
    return (shape,)


def _transpose_shape(node: Node) -> tuple[Shape, ...]:
    assert isinstance(node.op, Transpose)
    shape, permutation = node.inputs[0].shape, node.op.permutation
    require(
        sorted(permutation) == list(range(len(shape))),
        f"permutation {permutation} of the shape {shape}",
        "every axis once",
    )
    return (tuple(shape[axis] for axis in permutation),)


def _split_shape(node: Node) -> tuple[Shape, ...]:
    assert isinstance(node.op, Split)
    shape, axis, parts = node.inputs[0].shape, node.op.axis, len(node.outputs)
    require(
        0 <= axis < len(shape) and shape[axis] % parts == 0,
        f"{parts} parts along axis {axis} of the shape {shape}",
        "equal parts",
    )
    return ((*shape[:axis], shape[axis] // parts, *shape[axis + 1 :]),) * parts


def _strided_slice_shape(node: Node) -> tuple[Shape, ...]:
    op, shape = node.op, node.inputs[0].shape
    assert isinstance(op, StridedSlice)
    require(
        len(op.begin) == len(op.strides) == len(op.extent) == len(shape),
        f"begin {op.begin}, strides {op.strides}, extent {op.extent} of the shape {shape}",
        "one number per dimension",
    )
    for size, begin, stride, extent in zip(shape, op.begin, op.strides, op.extent, strict=True):
        last = begin + stride * (extent - 1)
        require(
            extent >= 1 and stride != 0 and 0 <= begin < size and 0 <= last < size,
            f"elements {begin} to {last} by {stride} of an axis of {size}",
            "a part of the axis that is not empty",
        )
    # The output may leave out axes of one element, and have new ones.
    result = node.output.shape
    significant = [extent for extent in op.extent if extent != 1]
    keeps = [extent for extent in result if extent != 1] == significant
    return (result if keeps else op.extent,)


DEFINITIONS = (
    moving(Pad, _pad_shape, "constant paddings and value"),
    moving(Concatenation, _concatenation_shape, "no fused activation", inputs=(1, MANY)),
    moving(Reshape, _reshape_shape),
    moving(Transpose, _transpose_shape, "constant permutation"),
    moving(Split, _split_shape, "equal parts, constant axis", outputs=MANY),
    moving(StridedSlice, _strided_slice_shape, "constant indices"),
)
