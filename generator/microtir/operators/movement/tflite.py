"""Read TFLite's operators that move elements, and write them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from microtir.dtype import DType
from microtir.errors import UnsupportedModelError
from microtir.graph.ir import Node, Tensor
from microtir.graph.names import brief
from microtir.operators.common import tflite_written as written
from microtir.operators.common.tflite_operands import MANY, Converted, Operands, TfliteReader
from microtir.operators.common.tflite_schema import BuiltinOperator, Options, TfliteActivation
from microtir.operators.common.unlike_scales import COPIED, NARROW, Moved, copied_by_micro
from microtir.operators.movement import definition as movement


@dataclass(frozen=True, slots=True)
class ConcatenationOptions(Options):
    axis: int = 0
    activation: TfliteActivation = TfliteActivation.NONE


@dataclass(frozen=True, slots=True)
class ReshapeOptions(Options):
    """Options of RESHAPE; an empty `new_shape` leaves the shape to the second input."""

    new_shape: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SqueezeOptions(Options):
    """Options of SQUEEZE; empty `squeeze_dims` removes every dimension of one."""

    squeeze_dims: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PackOptions(Options):
    values_count: int = 1
    axis: int = 0


@dataclass(frozen=True, slots=True)
class UnpackOptions(Options):
    num: int = 1
    axis: int = 0


@dataclass(frozen=True, slots=True)
class SplitOptions(Options):
    """Options of SPLIT and SPLIT_V."""

    num_splits: int = 1


@dataclass(frozen=True, slots=True)
class StridedSliceOptions(Options):
    """Options of STRIDED_SLICE; bit i of a mask speaks of dimension i."""

    begin_mask: int = 0
    end_mask: int = 0
    ellipsis_mask: int = 0
    new_axis_mask: int = 0
    shrink_axis_mask: int = 0
    offset: bool = False


def pad(operands: Operands) -> Converted:
    """Read PAD and PADV2: data, (before, after) per dimension, for PADV2 the value."""
    data = operands.input(0)
    before, after = operands.paddings(1, len(data.shape))
    if operands.code is BuiltinOperator.PAD:
        return Converted(movement.Pad(before, after, operands.stored_zero), (data,))
    value = operands.input(2)
    if value.type.elements != 1 or value.dtype is not data.dtype:
        raise operands.malformed(
            f"the value to pad with is {value.dtype.value} of shape {value.shape}",
            f"one {data.dtype.value}",
        )
    number = None if value.data is None else value.data.reshape(-1)[0].item()
    is_unlike = value.type.quantization != operands.output.type.quantization
    if is_unlike or number is None or (isinstance(number, int) and float(number) != number):
        return Converted(movement.Pad(before, after), (data, value))
    return Converted(movement.Pad(before, after, float(number)), (data,))


def concatenation(operands: Operands) -> Converted:
    """Read CONCATENATION."""
    options = operands.table(ConcatenationOptions)
    operands.no_activation(options.activation)
    tensors = operands.present
    axis = operands.axis(options.axis, len(tensors[0].shape))
    return Converted(movement.Concatenation(axis), tensors)


def pack(operands: Operands) -> Converted:
    """Read PACK."""
    options = operands.table(PackOptions)
    tensors = operands.present
    if options.values_count != len(tensors):
        raise operands.malformed(
            f"values_count is {options.values_count}", f"its {len(tensors)} inputs"
        )
    return Converted(movement.Pack(operands.axis(options.axis, len(tensors[0].shape) + 1)), tensors)


def unpack(operands: Operands) -> Converted:
    """Read UNPACK."""
    options, data = operands.table(UnpackOptions), operands.input(0)
    _check_parts(operands, "num", options.num)
    return Converted(movement.Unpack(operands.axis(options.axis, len(data.shape))), (data,))


def split(operands: Operands) -> Converted:
    """Read SPLIT: axis, data."""
    data = operands.input(1)
    axis = operands.axis(operands.integer(0, "the axis"), len(data.shape))
    _check_parts(operands, "num_splits", operands.table(SplitOptions).num_splits)
    return Converted(movement.Split(axis), (data,))


def split_v(operands: Operands) -> Converted:
    """Read SPLIT_V: data, sizes with one -1 at most, axis."""
    data = operands.input(0)
    axis = operands.axis(operands.integer(2, "the axis"), len(data.shape))
    _check_parts(operands, "num_splits", operands.table(SplitOptions).num_splits)
    sizes = operands.integers(1, "the sizes")
    if sizes.count(-1) == 1:
        rest = data.shape[axis] - sum(size for size in sizes if size != -1)
        sizes = tuple(rest if size == -1 else size for size in sizes)
    return Converted(movement.Split(axis, sizes), (data,))


def _check_parts(operands: Operands, name: str, parts: int) -> None:
    if parts != len(operands.outputs):
        raise operands.malformed(f"{name} is {parts}", f"its {len(operands.outputs)} outputs")


def transpose(operands: Operands) -> Converted:
    """Read TRANSPOSE: data, permutation."""
    data = operands.input(0)
    rank = len(data.shape)
    named = operands.integers(1, "the permutation")
    permutation = tuple(operands.axis(axis, rank) for axis in named)
    return Converted(movement.Transpose(permutation), (data,))


def reshape(operands: Operands) -> Converted:
    """Read RESHAPE: data and the shape as a constant, an option, or both (the input counts).

    The shape may hold one -1.  A shape that the model computes is what converters make of a
    batch of any size; with the batch fixed, the shape that is stored for the output holds.
    """
    data = operands.input(0)
    shape = operands.table(ReshapeOptions).new_shape
    shape_tensor = operands.optional(1)
    if shape_tensor is not None:
        if shape_tensor.data is None:
            return Converted(movement.Reshape(), (data,))
        shape = operands.integers(1, "the shape")
    # Old converters write (0,) for a scalar.
    shape = () if shape == (0,) else shape
    unknown = [axis for axis, extent in enumerate(shape) if extent == -1]
    if len(unknown) > 1 or any(extent < -1 for extent in shape):
        raise operands.malformed(f"the new shape is {shape}", "one -1 at most")
    if unknown:
        known = -math.prod(shape)
        missing = data.type.elements // known if known else 0
        shape = tuple(missing if extent == -1 else extent for extent in shape)
    return Converted(movement.Reshape(), (data,), shape)


def squeeze(operands: Operands) -> Converted:
    """Read SQUEEZE, which drops the named dimensions of one element, or all of them."""
    data = operands.input(0)
    named = operands.table(SqueezeOptions).squeeze_dims
    rank = len(data.shape)
    axes = {operands.axis(axis, rank) for axis in named}
    if not named:
        axes = {axis for axis, extent in enumerate(data.shape) if extent == 1}
    if any(data.shape[axis] != 1 for axis in axes):
        raise operands.malformed(
            f"dimensions {named} of {data.shape} cannot be dropped", "dimensions of extent 1"
        )
    squeezed = tuple(extent for axis, extent in enumerate(data.shape) if axis not in axes)
    return Converted(movement.Reshape(), (data,), squeezed)


def expand_dims(operands: Operands) -> Converted:
    """Read EXPAND_DIMS: data, axis."""
    shape = operands.input(0).shape
    axis = operands.axis(operands.integer(1, "the axis"), len(shape) + 1)
    return Converted(movement.Reshape(), (operands.input(0),), (*shape[:axis], 1, *shape[axis:]))


@dataclass(frozen=True, slots=True)
class _Axis:
    """The elements taken of one input axis; a dropped axis is not in the output's shape."""

    begin: int
    stride: int
    extent: int
    dropped: bool = False


def slice_(operands: Operands) -> Converted:
    """Read SLICE: data, begin, size; a size of -1 takes the rest."""
    shape = operands.input(0).shape
    sizes = operands.integers(2, "the size")
    if operands.input(1).data is None:
        return _slice_from(operands, shape, sizes)
    begins = operands.integers(1, "the begin")
    if not len(begins) == len(sizes) == len(shape):
        raise operands.malformed(
            f"begin {begins} and size {sizes} for data of shape {shape}", "one number per dimension"
        )
    axes = []
    for extent, begin, size in zip(shape, begins, sizes, strict=True):
        taken = extent - begin if size == -1 else size
        if begin < 0 or taken < 1 or begin + taken > extent:
            raise operands.malformed(
                f"begin {begins} and size {sizes} reach outside the shape {shape}",
                "a part of the data that is not empty",
            )
        axes.append(_Axis(begin, 1, taken))
    return _converted(operands, axes, tuple(axis.extent for axis in axes))


def _slice_from(operands: Operands, shape: tuple[int, ...], sizes: tuple[int, ...]) -> Converted:
    """Read SLICE with a begin that the model computes, and so sizes that it states.

    A size of -1 says that all of the axis is taken: nothing else is the same for every begin.
    """
    if len(sizes) != len(shape):
        raise operands.malformed(f"a size of {sizes} for data of shape {shape}")
    extent = tuple(n if size == -1 else size for size, n in zip(sizes, shape, strict=True))
    op = movement.StridedSlice((0,) * len(shape), (1,) * len(shape), extent)
    return Converted(op, (operands.input(0), operands.input(1)))


def reverse(operands: Operands) -> Converted:
    """Read REVERSE_V2: data, axes; a slice of all elements with strides of -1."""
    shape = operands.input(0).shape
    named = operands.integers(1, "the axes")
    reversed_ = {operands.axis(axis, len(shape)) for axis in named}
    axes = [
        _Axis(extent - 1, -1 if extent > 1 else 1, extent)
        if axis in reversed_
        else _Axis(0, 1, extent)
        for axis, extent in enumerate(shape)
    ]
    return _converted(operands, axes, shape)


def strided_slice(operands: Operands) -> Converted:
    """Read STRIDED_SLICE: data, begin, end, strides, as in numpy's `data[b:e:s, ...]`.

    Bit i of a mask speaks of entry i: take the axis from its start (begin_mask), to its end
    (end_mask), take only `begin` and drop the axis (shrink_axis_mask), insert an axis of one
    (new_axis_mask), take all axes that no entry speaks of (ellipsis_mask, one bit at most).
    Where several bits are set, ellipsis goes before new axis, new axis before shrink.  With the
    option offset, ends count from the begin of the axis.
    """
    options = operands.table(StridedSliceOptions)
    if operands.input(1).data is None:
        return _from_computed(operands, options)
    entries = tuple(operands.integers(i, n) for i, n in ((1, "the begin"), (2, "the end")))
    strides = operands.integers(3, "the strides")
    if not len(entries[0]) == len(entries[1]) == len(strides):
        raise operands.malformed(
            f"begin {entries[0]}, end {entries[1]} and strides {strides} differ in length"
        )
    return _resolve(operands, options, entries[0], entries[1], strides)


def _from_computed(operands: Operands, options: StridedSliceOptions) -> Converted:
    """Read STRIDED_SLICE with a begin that the model computes, and a length that is known.

    An index takes one element.  Else the end moves with the begin, by the option offset or because
    the model computes it, too: then the shape that is stored for the output says how far.
    """
    shape, begin, end = (operands.input(i) for i in range(3))
    size, strides = shape.shape, operands.integers(3, "the strides")
    masks = options.ellipsis_mask | options.new_axis_mask
    if masks or any(stride != 1 for stride in strides) or begin.shape != (len(strides),):
        raise _unknown_part(operands, "strides of 1, no ellipsis and no new axis")
    indices = {i for i in range(len(strides)) if _bit(options.shrink_axis_mask, i)}
    axes = [axis for axis in range(len(size)) if axis not in indices]
    if len(axes) != len(operands.output.shape):
        raise operands.malformed(f"its output has the shape {operands.output.shape}")
    extents = dict(zip(axes, operands.output.shape, strict=True))
    for axis, taken in extents.items():
        is_open = _bit(options.begin_mask, axis) or _bit(options.end_mask, axis)
        moves = end.data is None or options.offset
        if taken != size[axis] and (is_open or not moves or operands.is_free):
            raise _unknown_part(operands, "an end that moves with the begin")
    if any(_bit(options.begin_mask, axis) for axis in indices):
        raise _unknown_part(operands, "an index without a begin mask")
    if options.offset and end.data is not None:
        lengths = operands.integers(2, "the end")
        named = {axis: lengths[axis] for axis in extents if axis < len(lengths)}
        if any(extents[a] not in (n, size[a]) for a, n in named.items()):
            raise operands.malformed(f"its output has the shape {operands.output.shape}")
    extent = tuple(extents.get(axis, 1) for axis in range(len(size)))
    op = movement.StridedSlice((0,) * len(size), (1,) * len(size), extent, from_end=True)
    return Converted(op, (shape, begin))


def _unknown_part(operands: Operands, legal: str) -> UnsupportedModelError:
    begin = operands.input(1)
    return operands.unsupported(
        f"the model computes the begin (input 1 {brief(begin.name)!r}) of a part of unknown length",
        f"a constant begin, or {legal}",
        "slice with a constant length: x[:, i : i + 4]",
    )


def _resolve(
    operands: Operands,
    options: StridedSliceOptions,
    begins: tuple[int, ...],
    ends: tuple[int, ...],
    strides: tuple[int, ...],
) -> Converted:
    shape = operands.input(0).shape
    spoken_of = sum(
        not _bit(options.ellipsis_mask, i) and not _bit(options.new_axis_mask, i)
        for i in range(len(begins))
    )
    rest = len(shape) - spoken_of
    ellipses = sum(_bit(options.ellipsis_mask, i) for i in range(len(begins)))
    if rest < 0 or ellipses > 1:
        raise operands.malformed(
            f"{spoken_of} indices and {ellipses} ellipses for data of shape {shape}",
            "at most one index per dimension, and one ellipsis",
        )
    axes: list[_Axis] = []
    result: list[int] = []
    for i, (begin, end, stride) in enumerate(zip(begins, ends, strides, strict=True)):
        if _bit(options.ellipsis_mask, i):
            taken = [_Axis(0, 1, extent) for extent in shape[len(axes) : len(axes) + rest]]
        elif _bit(options.new_axis_mask, i):
            result.append(1)
            continue
        elif _bit(options.shrink_axis_mask, i):
            index = 0 if _bit(options.begin_mask, i) else begin
            taken = [_single(operands, shape[len(axes)], index, stride)]
        else:
            extent = shape[len(axes)]
            first = None if _bit(options.begin_mask, i) else begin
            if options.offset and stride:
                end += slice(first, None, stride).indices(extent)[0]
            last = None if _bit(options.end_mask, i) else end
            taken = [_range(operands, extent, slice(first, last, stride))]
        axes.extend(taken)
        result.extend(axis.extent for axis in taken if not axis.dropped)
    # Without an ellipsis, axes at the end that no entry speaks of are taken whole.
    whole = [_Axis(0, 1, extent) for extent in shape[len(axes) :]]
    return _converted(operands, [*axes, *whole], (*result, *(axis.extent for axis in whole)))


def _single(operands: Operands, extent: int, begin: int, stride: int) -> _Axis:
    if not -extent <= begin < extent or stride < 1:
        raise operands.malformed(
            f"index {begin} with stride {stride} in an axis of {extent}",
            f"{-extent} to {extent - 1}, stride above 0",
        )
    return _Axis(begin % extent, 1, 1, dropped=True)


def _range(operands: Operands, extent: int, wanted: slice) -> _Axis:
    if wanted.step == 0:
        raise operands.malformed("a stride is 0", "any other number")
    taken = range(*wanted.indices(extent))
    if not taken:
        raise operands.malformed(
            f"begin {wanted.start}, end {wanted.stop}, stride {wanted.step}"
            f" select nothing of an axis of {extent}",
            "a part of the data that is not empty",
        )
    # A stride beyond the only element taken says nothing, and might not fit an index.
    return _Axis(taken.start, taken.step if len(taken) > 1 else 1, len(taken))


def _bit(mask: int, index: int) -> bool:
    return bool(mask >> index & 1)


def _converted(operands: Operands, axes: list[_Axis], shape: tuple[int, ...]) -> Converted:
    op = movement.StridedSlice(
        begin=tuple(axis.begin for axis in axes),
        strides=tuple(axis.stride for axis in axes),
        extent=tuple(axis.extent for axis in axes),
    )
    return Converted(op, (operands.input(0),), shape)


def write_pad(node: Node) -> written.Written | None:
    """Write PAD, which adds the real number 0."""
    op, quant = node.attributes(movement.Pad), node.output.type.quantization
    zero = 0.0 if quant is None or quant.is_per_channel else float(quant.zero_point)
    if len(node.inputs) > 1 or op.value != zero:
        return None
    return written.Written((*node.inputs, _paddings(node, op)))


def write_padv2(node: Node) -> written.Written:
    """Write PADV2, which is told what to add."""
    op, (data, *value) = node.attributes(movement.Pad), node.inputs
    if not value:
        type_ = replace(node.output.type, shape=())
        number = np.array(op.value, type_.dtype.value)
        value = [written.constant(node, "value", number, type_)]
    return written.Written((data, _paddings(node, op), *value))


def _paddings(node: Node, op: movement.Pad) -> Tensor:
    return written.constant(node, "paddings", written.pairs(op.before, op.after))


def write_concatenation(node: Node) -> written.Written:
    """Write CONCATENATION."""
    axis = node.attributes(movement.Concatenation).axis
    return written.Written(node.inputs, ConcatenationOptions(axis))


def write_pack(node: Node) -> written.Written:
    """Write PACK."""
    axis = node.attributes(movement.Pack).axis
    return written.Written(node.inputs, PackOptions(len(node.inputs), axis))


def write_unpack(node: Node) -> written.Written:
    """Write UNPACK."""
    axis = node.attributes(movement.Unpack).axis
    return written.Written(node.inputs, UnpackOptions(len(node.outputs), axis))


def write_split(node: Node) -> written.Written | None:
    """Write SPLIT, whose parts are equal."""
    op = node.attributes(movement.Split)
    if op.sizes:
        return None
    axis = written.number(node, "axis", op.axis)
    return written.Written((axis, *node.inputs), SplitOptions(len(node.outputs)))


def write_split_v(node: Node) -> written.Written:
    """Write SPLIT_V."""
    op = node.attributes(movement.Split)
    sizes, axis = written.numbers(node, "sizes", op.sizes), written.number(node, "axis", op.axis)
    return written.Written((*node.inputs, sizes, axis), SplitOptions(len(node.outputs)))


def write_transpose(node: Node) -> written.Written:
    """Write TRANSPOSE."""
    permutation = node.attributes(movement.Transpose).permutation
    return written.Written((*node.inputs, written.numbers(node, "permutation", permutation)))


def write_reshape(node: Node) -> written.Written:
    """Write RESHAPE, for SQUEEZE and EXPAND_DIMS, too: the shape is an input and an option."""
    shape = node.output.shape
    return written.Written(
        (*node.inputs, written.numbers(node, "shape", shape)), ReshapeOptions(shape)
    )


def write_slice(node: Node) -> written.Written | None:
    """Write SLICE of steps of 1, which drops no axis; its begin may be computed."""
    op, (data, *computed) = node.attributes(movement.StridedSlice), node.inputs
    if set(op.strides) - {1} or op.from_end or node.output.shape != op.extent:
        return None
    begin = computed[0] if computed else written.numbers(node, "begin", op.begin)
    return written.Written((data, begin, written.numbers(node, "size", op.extent)))


def write_strided_slice(node: Node) -> written.Written | None:
    """Write STRIDED_SLICE; an end below the first element is one that a mask leaves open.

    A begin that is computed, and may count from the end, moves the end with it.
    """
    op, (data, *computed) = node.attributes(movement.StridedSlice), node.inputs
    dropped = _dropped(op.extent, node.output.shape)
    if dropped is None or (computed and not op.from_end):
        return None
    axes = list(zip(op.begin, op.strides, op.extent, strict=True))
    ends = [begin + stride * extent for begin, stride, extent in axes]
    open_ = [end < 0 for end in ends]
    begin = computed[0] if computed else written.numbers(node, "begin", op.begin)
    entries = begin.type.elements
    if any(axis >= entries for axis in dropped):
        return None
    options = StridedSliceOptions(
        end_mask=_mask(axis for axis, is_open in enumerate(open_) if is_open),
        shrink_axis_mask=_mask(dropped),
        offset=bool(computed),
    )
    end, strides = (
        written.numbers(node, what, values[:entries])
        for what, values in (("end", ends), ("strides", op.strides))
    )
    return written.Written((data, begin, end, strides), options)


def _dropped(extents: tuple[int, ...], shape: tuple[int, ...]) -> list[int] | None:
    """Return the axes of one element that a shape leaves out; None if it has new ones."""
    dropped, rest = [], list(shape)
    for axis, extent in enumerate(extents):
        after = len(extents) - axis - 1
        if rest and rest[0] == extent and not (extent == 1 and len(rest) <= after):
            rest.pop(0)
        elif extent == 1:
            dropped.append(axis)
        else:
            return None
    return None if rest else dropped


def _mask(axes: Iterable[int]) -> int:
    return sum(1 << axis for axis in axes)


_Code = BuiltinOperator
_VALUE_COMPARED = Moved(
    refused_by_micro=frozenset({DType.INT8}),
    refused_by_litert=NARROW,
    without_micro=frozenset({DType.UINT8}),
    compared=frozenset({1}),
)
"""Rule of PADV2: references compare only the scale of the value, tflite-micro in int8."""

_CONCATENATED = Moved(
    refused_by_micro=frozenset({DType.INT8}),
    refused_by_litert=frozenset({DType.INT8, DType.UINT8}),
    without_micro=frozenset({DType.UINT8}),
)
"""Rule of CONCATENATION: scales of int8 are compared; uint8 is rescaled, but not for channels."""

READERS = (
    TfliteReader(movement.Pad, _Code.PAD, pad, inputs=(2, 2), moved=COPIED, write=write_pad),
    TfliteReader(
        movement.Pad, _Code.PADV2, pad, inputs=(3, 3), moved=_VALUE_COMPARED, write=write_padv2
    ),
    TfliteReader(
        movement.Concatenation,
        _Code.CONCATENATION,
        concatenation,
        ConcatenationOptions,
        (1, MANY),
        moved=_CONCATENATED,
        write=write_concatenation,
    ),
    TfliteReader(
        movement.Reshape,
        _Code.RESHAPE,
        reshape,
        ReshapeOptions,
        (1, 2),
        moved=COPIED,
        write=write_reshape,
    ),
    TfliteReader(movement.Reshape, _Code.SQUEEZE, squeeze, SqueezeOptions, moved=COPIED),
    TfliteReader(
        movement.Reshape,
        _Code.EXPAND_DIMS,
        expand_dims,
        inputs=(2, 2),
        moved=copied_by_micro(DType.INT8, DType.INT16),
    ),
    TfliteReader(
        movement.Transpose,
        _Code.TRANSPOSE,
        transpose,
        inputs=(2, 2),
        moved=COPIED,
        write=write_transpose,
    ),
    TfliteReader(
        movement.Pack,
        _Code.PACK,
        pack,
        PackOptions,
        (1, MANY),
        write=write_pack,
        moved=copied_by_micro(DType.INT8, DType.INT16),
    ),
    TfliteReader(
        movement.Split,
        _Code.SPLIT,
        split,
        SplitOptions,
        (2, 2),
        MANY,
        moved=COPIED,
        write=write_split,
    ),
    TfliteReader(
        movement.Split,
        _Code.SPLIT_V,
        split_v,
        SplitOptions,
        (3, 3),
        MANY,
        moved=COPIED,
        write=write_split_v,
    ),
    TfliteReader(
        movement.Unpack,
        _Code.UNPACK,
        unpack,
        UnpackOptions,
        outputs=MANY,
        write=write_unpack,
        moved=copied_by_micro(DType.INT8, DType.INT16),
    ),
    TfliteReader(movement.StridedSlice, _Code.REVERSE_V2, reverse, inputs=(2, 2), moved=COPIED),
    TfliteReader(
        movement.StridedSlice, _Code.SLICE, slice_, inputs=(3, 3), moved=COPIED, write=write_slice
    ),
    TfliteReader(
        movement.StridedSlice,
        _Code.STRIDED_SLICE,
        strided_slice,
        StridedSliceOptions,
        (4, 4),
        write=write_strided_slice,
        moved=COPIED,
    ),
)
