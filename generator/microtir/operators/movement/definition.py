"""Define operators that move elements without computing by their attributes and rules."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from microtir.dtype import DType
from microtir.graph.ir import Node, Quantization
from microtir.graph.operator import Operator
from microtir.operators.common import quantization, tflite_operands, types, unlike_scales
from microtir.operators.common.images import by_memory, by_memory_if, unless_along_images
from microtir.operators.common.shapes import Shape, require
from microtir.operators.definition import Definition, Trait, moving


@dataclass(frozen=True, slots=True)
class Pad(Operator):
    """PAD and PADV2. The new elements hold `value`, as stored (the zero point for PAD).

    A second input, of one element, takes the place of `value`.
    """

    before: tuple[int, ...] = ()  # per axis
    after: tuple[int, ...] = ()
    value: float = 0.0  # an integral number for integer tensors


@dataclass(frozen=True, slots=True)
class Concatenation(Operator):
    """Concatenation along `axis` (non-negative); it never rescales."""

    axis: int = 0


@dataclass(frozen=True, slots=True)
class Reshape(Operator):
    """RESHAPE, SQUEEZE and EXPAND_DIMS: same elements, the shape of the output tensor."""


@dataclass(frozen=True, slots=True)
class Relabel(Operator):
    """The stored values of the input, said to be in the scale and zero point of the output.

    Readers put it beside operators that references copy integers in although the scales differ, so
    that these operators have one scale.

    Args:
        by_micro: what tflite-micro does there.
        by_litert: what LiteRT does.
        named: the operator of the model that it is a part of, or the tensor of a subgraph.
        taken: the quantisation that its integers had before that operator moved them, where that
            was one for each channel.
        is_told: whether its integers stand for other numbers than in the model if scales differ.
    """

    by_micro: unlike_scales.UnlikeScales = unlike_scales.UnlikeScales.COPIES
    by_litert: unlike_scales.UnlikeScales = unlike_scales.UnlikeScales.COPIES
    named: str = field(default="", compare=False)
    taken: Quantization | None = field(default=None, compare=False)
    is_told: bool = field(default=True, compare=False)


SAME_BYTES = (Reshape, Relabel)
"""Operators whose output holds what their input holds, in its order."""


@dataclass(frozen=True, slots=True)
class Transpose(Operator):
    """Axis i of the output is axis `permutation[i]` of the input."""

    permutation: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Pack(Operator):
    """PACK: inputs of one shape beside each other along a new `axis` (non-negative)."""

    axis: int = 0


@dataclass(frozen=True, slots=True)
class Split(Operator):
    """SPLIT and SPLIT_V: parts along `axis` (non-negative), one per output.

    `sizes` are their extents along the axis; without them the parts are equal.
    """

    axis: int = 0
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Unpack(Operator):
    """UNPACK: each index of `axis` (non-negative) is an output, which lacks the axis."""

    axis: int = 0


@dataclass(frozen=True, slots=True)
class StridedSlice(Operator):
    """SLICE, STRIDED_SLICE with masks resolved, REVERSE_V2: element i is begin + i * stride.

    Axes that a shrink mask drops have extent 1 here; the output tensor's shape leaves them out.
    A second input takes the place of `begin` for the first axes: what it leaves no room for begins
    as near as it fits. Numbers below 0 in it may count from the end of an axis.
    """

    begin: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()  # may be negative
    extent: tuple[int, ...] = ()  # elements taken per input axis
    from_end: bool = False  # numbers below 0 that the model computes count from the end


def _pad_shape(node: Node) -> tuple[Shape, ...]:
    op, source = node.attributes(Pad), node.inputs[0]
    require(
        len(op.before) == len(op.after) == len(source.shape)
        and min((*op.before, *op.after), default=0) >= 0,
        f"paddings {op.before} and {op.after} for the shape {source.shape}",
        "a number from 0 for each side of each dimension",
    )
    if len(node.inputs) == 2:
        require(node.inputs[1].type.elements == 1, f"{node.inputs[1].shape} values to pad with")
    elif not source.dtype.is_float:
        in_range = source.dtype.min <= op.value <= source.dtype.max
        require(
            in_range and float(op.value).is_integer(),
            f"the value {op.value}",
            f"a {source.dtype.value}",
        )
    axes = zip(op.before, source.shape, op.after, strict=True)
    return (tuple(before + extent + after for before, extent, after in axes),)


def _concatenation_shape(node: Node) -> tuple[Shape, ...]:
    parts, axis = [tensor.shape for tensor in node.inputs], node.attributes(Concatenation).axis
    first = parts[0]
    require(0 <= axis < len(first), f"axis {axis} of the shape {first}")
    rest = {(len(shape), shape[:axis], shape[axis + 1 :]) for shape in parts}
    require(
        len(rest) == 1, f"shapes {parts} along axis {axis}", "shapes that differ in that axis only"
    )
    return ((*first[:axis], sum(shape[axis] for shape in parts), *first[axis + 1 :]),)


def _reshape_shape(node: Node) -> tuple[Shape, ...]:
    elements, shape = node.inputs[0].type.elements, node.output.shape
    require(math.prod(shape) == elements, f"{elements} elements to the shape {shape}")
    return (shape,)


def _transpose_shape(node: Node) -> tuple[Shape, ...]:
    shape, permutation = node.inputs[0].shape, node.attributes(Transpose).permutation
    require(
        sorted(permutation) == list(range(len(shape))),
        f"permutation {permutation} of the shape {shape}",
        "every axis once",
    )
    return (tuple(shape[axis] for axis in permutation),)


def _pack_shape(node: Node) -> tuple[Shape, ...]:
    shapes, axis = {tensor.shape for tensor in node.inputs}, node.attributes(Pack).axis
    require(len(shapes) == 1, f"shapes {[t.shape for t in node.inputs]}", "equal shapes")
    (shape,) = shapes
    require(0 <= axis <= len(shape), f"the new axis {axis} of the shape {shape}")
    return ((*shape[:axis], len(node.inputs), *shape[axis:]),)


def _split_shape(node: Node) -> tuple[Shape, ...]:
    op, shape, parts = node.attributes(Split), node.inputs[0].shape, len(node.outputs)
    axis = op.axis
    require(0 <= axis < len(shape), f"axis {axis} of the shape {shape}")
    require(
        len(op.sizes) == parts if op.sizes else shape[axis] % parts == 0,
        f"{parts} parts along axis {axis} of the shape {shape}",
        f"{len(op.sizes)} parts" if op.sizes else "equal parts",
    )
    sizes = op.sizes or (shape[axis] // parts,) * parts
    require(
        min(sizes) >= 1 and sum(sizes) == shape[axis],
        f"parts of {sizes} along axis {axis} of the shape {shape}",
        f"parts that add up to {shape[axis]}",
    )
    return tuple((*shape[:axis], size, *shape[axis + 1 :]) for size in sizes)


def _unpack_shape(node: Node) -> tuple[Shape, ...]:
    shape, axis, parts = node.inputs[0].shape, node.attributes(Unpack).axis, len(node.outputs)
    require(
        0 <= axis < len(shape) and shape[axis] == parts,
        f"{parts} outputs for axis {axis} of the shape {shape}",
        "an output for each index of the axis",
    )
    return ((*shape[:axis], *shape[axis + 1 :]),) * parts


def _strided_slice_shape(node: Node) -> tuple[Shape, ...]:
    op, shape = node.attributes(StridedSlice), node.inputs[0].shape
    if len(node.inputs) == 2:
        return _computed_slice_shape(node, op)
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
    return (_with_dropped_axes(node, op),)


def _with_dropped_axes(node: Node, op: StridedSlice) -> Shape:
    """Return the shape of a slice, which may leave out axes of one element, and have new ones."""
    result = node.output.shape
    significant = [extent for extent in op.extent if extent != 1]
    keeps = [extent for extent in result if extent != 1] == significant
    return result if keeps else op.extent


def _computed_slice_shape(node: Node, op: StridedSlice) -> tuple[Shape, ...]:
    shape, begin = node.inputs[0].shape, node.inputs[1].shape
    are_few = len(begin) == 1 and begin[0] <= len(shape)
    require(are_few, f"a begin of the shape {begin}", f"({len(shape)},)")
    fits = len(op.extent) == len(shape) and all(
        1 <= taken <= size for taken, size in zip(op.extent, shape, strict=True)
    )
    require(fits, f"a slice of {op.extent} of the shape {shape}", "a part that is not empty")
    are_whole = op.extent[begin[0] :] == shape[begin[0] :]
    require(are_whole, f"a slice of {op.extent} of the shape {shape} by {begin[0]} begins")
    require(set(op.strides) <= {1}, f"the strides {op.strides} of a begin that is computed", "1")
    return (_with_dropped_axes(node, op),)


def _along(node: Node) -> int:
    op = node.op
    assert isinstance(op, Concatenation | Pack | Split | Unpack)
    return op.axis


def _adds_no_image(node: Node) -> bool:
    op = node.attributes(Pad)
    axis = node.inputs[0].type.outermost
    return not any((*op.before[: axis + 1], *op.after[: axis + 1]))


def _keeps_images_outermost(node: Node) -> bool:
    axis = node.inputs[0].type.outermost
    return node.attributes(Transpose).permutation[node.output.type.outermost] == axis


def _slice_one_image(node: Node, images: int) -> Operator | None:
    op, shape = node.attributes(StridedSlice), node.inputs[0].shape
    axis = node.inputs[0].type.outermost
    takes_all = (op.begin[axis], op.strides[axis], op.extent[axis]) == (0, 1, shape[axis])
    if not takes_all or len(node.inputs) > 1:
        return None
    extent = (*op.extent[:axis], op.extent[axis] // images, *op.extent[axis + 1 :])
    return replace(op, extent=extent)


_APART = unless_along_images(_along)

DEFINITIONS = (
    moving(
        Pad, _pad_shape, "constant paddings", inputs=(1, 2), one_image=by_memory_if(_adds_no_image)
    ),
    moving(
        Concatenation,
        _concatenation_shape,
        "no fused activation",
        inputs=(1, tflite_operands.MANY),
        one_image=_APART,
    ),
    moving(Reshape, _reshape_shape, one_image=by_memory),
    Definition(
        Relabel,
        types=types.MOVED,
        quantization=quantization.UNUSED,
        one_image=by_memory,
        traits=frozenset({Trait.MOVES_DATA, Trait.ELEMENTWISE, Trait.STORED}),
    ),
    moving(
        Transpose,
        _transpose_shape,
        "constant permutation",
        one_image=by_memory_if(_keeps_images_outermost),
    ),
    moving(Pack, _pack_shape, inputs=(1, tflite_operands.MANY), one_image=_APART),
    moving(Split, _split_shape, "constant axis", outputs=tflite_operands.MANY, one_image=_APART),
    moving(Unpack, _unpack_shape, outputs=tflite_operands.MANY, one_image=_APART),
    moving(
        StridedSlice,
        _strided_slice_shape,
        "constant indices; the begin may be computed where the extent is known",
        inputs=(1, 2),
        types=types.MOVED.indexed(1, DType.INT32, DType.INT64),
        one_image=_slice_one_image,
    ),
)
