"""Read ONNX's operators that move elements without computing."""

from __future__ import annotations

import math

import numpy as np

from microtir.dtype import DType
from microtir.errors import ExportProblem
from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_operands import (
    MANY,
    MICROSOFT,
    OnnxNode,
    OnnxReader,
    by_definition,
)
from microtir.operators.common.onnx_parts import along, box, filled
from microtir.operators.common.onnx_quantized import Scaling, requantised
from microtir.operators.common.onnx_values import Value
from microtir.operators.indexing.definition import Gather
from microtir.operators.movement import definition as movement
from microtir.operators.movement.onnx_slices import dynamic_slice, slice_
from microtir.operators.repetition.definition import MirrorPad

_AXES_AS_INPUT = 13  # Split, Squeeze and Unsqueeze since this operator set


def identity(node: OnnxNode) -> Value:
    """Read Identity: the input itself."""
    return node.value(0)


def dropout(node: OnnxNode) -> tuple[Tensor, ...]:
    """Read Dropout where nothing is left out: the input itself, and a mask that keeps all."""
    if node.optional(2) is not None and node.known(2, "the mode").any() and _drops(node):
        raise node.unsupported(
            "it is in training mode", "inference, or a ratio of 0",
            "export the model in inference mode", ExportProblem.TRAINING_MODE,
        )  # fmt: skip
    x = node.input(0)
    return x, filled(node, x.shape, 1, DType.BOOL)


def _drops(node: OnnxNode) -> bool:
    """Return whether training leaves anything out; without a ratio it is a half."""
    return node.optional(1) is None or bool(node.known(1, "the ratio").any())


def reshape(node: OnnxNode) -> Tensor:
    """Read Reshape: 0 keeps an extent unless allowzero is set, and -1 takes what is left."""
    x = node.input(0)
    wanted = list(node.integers(1, "the shape"))
    if not node.integer("allowzero", 0):
        extents = (*x.shape, *(0,) * len(wanted))
        wanted = [extent or extents[axis] for axis, extent in enumerate(wanted)]
    others = math.prod(extent for extent in wanted if extent != -1)
    if wanted.count(-1) == 1 and others > 0 and x.type.elements % others == 0:
        wanted[wanted.index(-1)] = x.type.elements // others
    if math.prod(wanted) != x.type.elements or min(wanted, default=1) < 0:
        raise node.malformed(f"{x.shape} as the shape {tuple(wanted)}", "as many elements")
    return node.emit(movement.Reshape(), x, shape=tuple(wanted))


def flatten(node: OnnxNode) -> Tensor:
    """Read Flatten: a matrix of the axes before one and of those from it on."""
    x, axis = node.input(0), node.integer("axis", 1)
    rank = len(x.shape)
    axis = axis + rank if axis < 0 else axis
    if not 0 <= axis <= rank:
        raise node.malformed(f"axis {axis} of {rank} dimensions", f"0 to {rank}")
    return node.emit(
        movement.Reshape(), x, shape=(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
    )


def _stated_axes(node: OnnxNode) -> tuple[int, ...] | None:
    if node.version >= _AXES_AS_INPUT:
        return None if node.optional(1) is None else node.integers(1, "the axes")
    return node.list_of_integers("axes", ()) if node.has("axes") else None


def squeeze(node: OnnxNode) -> Tensor:
    """Read Squeeze: leave out axes of one element."""
    x, stated = node.input(0), _stated_axes(node)
    rank = len(x.shape)
    if stated is None:
        axes = tuple(axis for axis, extent in enumerate(x.shape) if extent == 1)
    else:
        axes = node.axes(stated, rank)
    if any(x.shape[axis] != 1 for axis in axes):
        raise node.malformed(f"axes {axes} of the shape {x.shape}", "extents of 1")
    shape = tuple(extent for axis, extent in enumerate(x.shape) if axis not in axes)
    return node.emit(movement.Reshape(), x, shape=shape)


def unsqueeze(node: OnnxNode) -> Tensor:
    """Read Unsqueeze: new axes of one element, counted in the result."""
    x, stated = node.input(0), _stated_axes(node) or ()
    rank = len(x.shape) + len(stated)
    axes = node.axes(stated, rank)
    others = iter(x.shape)
    return node.emit(
        movement.Reshape(),
        x,
        shape=tuple(1 if axis in axes else next(others) for axis in range(rank)),
    )


def expand_dims(node: OnnxNode) -> Tensor:
    """Read com.microsoft's ExpandDims: one new axis, counted in the result."""
    x, axis = node.input(0), node.whole_number(1, "the axis")
    at = node.axis(axis, len(x.shape) + 1)
    return node.emit(movement.Reshape(), x, shape=(*x.shape[:at], 1, *x.shape[at:]))


def transpose(node: OnnxNode) -> Tensor:
    """Read Transpose; without an attribute the axes are reversed."""
    x = node.input(0)
    reverse = tuple(reversed(range(len(x.shape))))
    order = node.list_of_integers("perm", reverse)
    return node.emit(movement.Transpose(order), x) if order else x


def concat(node: OnnxNode) -> Tensor:
    """Read Concat."""
    parts = [tensor for tensor in node.present if tensor.type.elements] or [node.input(0)]
    axis = node.axis(node.integer("axis"), len(parts[0].shape))
    return parts[0] if len(parts) == 1 else node.emit(movement.Concatenation(axis), *parts)


def qlinear_concat(node: OnnxNode) -> Tensor:
    """Read com.microsoft's QLinearConcat: output scale and zero point, then parts with theirs."""
    if len(node.inputs) % 3 != 2:
        raise node.malformed(f"{len(node.inputs)} inputs", "2 and 3 for each part")
    places = range(2, len(node.inputs), 3)
    inputs = tuple((at, Scaling(*node.inputs_at(at + 1, at + 2))) for at in places)
    return requantised(node, inputs, concat, Scaling(*node.inputs_at(0, 1)))


def split(node: OnnxNode) -> tuple[Tensor, ...]:
    """Read Split: sizes are an attribute or an input, or the parts are equal but for the last."""
    x = node.input(0)
    axis = node.axis(node.integer("axis", 0), len(x.shape))
    extent, count = x.shape[axis], node.outputs
    if node.version < _AXES_AS_INPUT:
        sizes = node.list_of_integers("split", ())
    else:
        sizes = node.integers(1, "the sizes") if node.optional(1) is not None else ()
    if not sizes:
        each = -(-extent // count)
        sizes = (*(each,) * (count - 1), extent - each * (count - 1))
    if len(sizes) != count or sum(sizes) != extent or min(sizes) < 0:
        raise node.malformed(
            f"{count} parts of {sizes} of an axis of {extent}", "sizes that add up"
        )
    if min(sizes) > 0:
        return node.emit_parts(movement.Split(axis, sizes), x, count)
    return _some_empty(node, x, axis, sizes)


def _some_empty(node: OnnxNode, x: Tensor, axis: int, sizes: tuple[int, ...]) -> tuple[Tensor, ...]:
    """Return parts some of which hold nothing."""
    begins = (sum(sizes[:number]) for number in range(len(sizes)))
    return tuple(
        along(node, x, axis, begin, size) for begin, size in zip(begins, sizes, strict=True)
    )


def pad(node: OnnxNode) -> Tensor:
    """Read Pad: constant, reflect, edge or wrap; a negative number cuts off."""
    x, mode = node.input(0), node.word("mode", "constant")
    rank = len(x.shape)
    before, after = _pads(node, rank)
    inside = _cut(node, x, before, after)
    before, after = (tuple(max(n, 0) for n in side) for side in (before, after))
    if max((*before, *after), default=0) == 0:
        return inside
    if mode == "reflect":
        return node.emit(MirrorPad(before, after), inside)
    if mode == "edge":
        return _extended(node, inside, before, after)
    if mode == "wrap":
        return _wrapped(node, inside, before, after)
    if mode != "constant":
        raise node.unsupported(
            f"its mode is {mode!r}", "constant, reflect, edge or wrap", "pad in another mode"
        )
    return node.emit(movement.Pad(before, after, _value(node)), inside)


def _has_attributes(node: OnnxNode) -> bool:
    """Return whether what is padded is said by attributes; com.microsoft's has inputs."""
    return node.version < 11 and not node.operator.startswith(MICROSOFT)


def _value(node: OnnxNode) -> float:
    if _has_attributes(node):
        return node.number("value", 0.0)
    if node.optional(2) is None:
        return 0.0
    return float(node.known_number(2, "the value to pad with"))


def _pads(node: OnnxNode, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if _has_attributes(node):
        pads = node.list_of_integers("pads")
    else:
        pads = node.integers(1, "the pads")
    stated = tuple(range(rank))
    if node.optional(3) is not None:
        stated = tuple(node.axis(axis, rank) for axis in node.integers(3, "the axes"))
    if len(pads) != 2 * len(stated):
        raise node.malformed(f"pads {pads} of {len(stated)} axes", "two numbers for each")
    before, after = [0] * rank, [0] * rank
    for number, axis in enumerate(stated):
        before[axis], after[axis] = pads[number], pads[number + len(stated)]
    return tuple(before), tuple(after)


def _cut(node: OnnxNode, x: Tensor, before: tuple[int, ...], after: tuple[int, ...]) -> Tensor:
    """Return the part that negative pads leave."""
    begin = tuple(max(-n, 0) for n in before)
    ends = zip(x.shape, begin, after, strict=True)
    extent = tuple(size - first - max(-last, 0) for size, first, last in ends)
    if extent == x.shape:
        return x
    if min(extent) < 1:
        raise node.malformed(f"pads {before} and {after} of the shape {x.shape}", "some rest")
    return box(node, x, begin, extent)


def _extended(node: OnnxNode, x: Tensor, before: tuple[int, ...], after: tuple[int, ...]) -> Tensor:
    """Return a tensor whose first and last elements along each axis are repeated."""
    for axis, counts in enumerate(zip(before, after, strict=True)):
        if max(counts) > MANY:
            raise node.malformed(f"pads {before} and {after} by repetition", f"at most {MANY}")
        first, last = (
            [along(node, x, axis, place, 1)] * count if count else []
            for count, place in zip(counts, (0, x.shape[axis] - 1), strict=True)
        )
        if first or last:
            x = node.emit(movement.Concatenation(axis), *first, x, *last)
    return x


def _wrapped(node: OnnxNode, x: Tensor, before: tuple[int, ...], after: tuple[int, ...]) -> Tensor:
    """Return a tensor that goes on with its other end along each axis."""
    for axis, (first, last) in enumerate(zip(before, after, strict=True)):
        if first or last:
            node.check_room(first + x.shape[axis] + last)
            places = np.arange(-first, x.shape[axis] + last) % x.shape[axis]
            x = node.emit(Gather(axis), x, node.constant(places.astype(np.int32)))
    return x


def crop(node: OnnxNode) -> Tensor:
    """Read onnxruntime's Crop: an image without its border, or as much of it as is said."""
    x, border = node.input(0), node.list_of_integers("border")
    if len(x.shape) != 4 or len(border) != 4 or min(border, default=0) < 0:
        raise node.malformed(f"a border of {border} around {x.shape}", "4 numbers around an image")
    left, top, right, bottom = border
    size = node.list_of_integers("scale", (x.shape[2] - top - bottom, x.shape[3] - left - right))
    if len(size) != 2 or min(size) < 1 or top + size[0] > x.shape[2] or left + size[1] > x.shape[3]:
        raise node.malformed(
            f"a part of {size} at {border} of an image of {x.shape}", "a part of it"
        )
    return box(node, x, (0, 0, top, left), (*x.shape[:2], *size))


ONNX_READERS = (
    OnnxReader("Identity", identity),
    OnnxReader("Dropout", dropout, (1, 3), ("ratio", "seed"), outputs=2),
    OnnxReader("Reshape", reshape, (2, 2), ("allowzero",)),
    OnnxReader("Flatten", flatten, attributes=("axis",)),
    OnnxReader("Squeeze", squeeze, (1, 2), ("axes",)),
    OnnxReader("Unsqueeze", unsqueeze, (1, 2), ("axes",)),
    OnnxReader("Transpose", transpose, attributes=("perm",)),
    OnnxReader("Concat", concat, (1, MANY), ("axis",)),
    OnnxReader("QLinearConcat", qlinear_concat, (5, MANY), ("axis",), domain=MICROSOFT),
    OnnxReader("Split", split, (1, 2), ("axis", "num_outputs", "split"), outputs=MANY),
    OnnxReader("DynamicSlice", dynamic_slice, (3, 4), domain=MICROSOFT),
    OnnxReader("ExpandDims", expand_dims, (2, 2), domain=MICROSOFT),
    OnnxReader("Slice", slice_, (1, 5), ("axes", "ends", "starts")),
    OnnxReader("Crop", crop, attributes=("border", "scale"), domain=MICROSOFT),
    OnnxReader("CenterCropPad", by_definition, (2, 2), ("axes",)),
    OnnxReader("Pad", pad, (1, 4), ("mode", "pads", "value")),
    OnnxReader("Pad", pad, (2, 3), ("mode",), domain=MICROSOFT),
)
