"""Readers of SLICE and STRIDED_SLICE: masks are resolved into begin, stride and extent."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.frontend.operands import Converted, Operands
from microtir.frontend.tflite_schema import StridedSliceOptions
from microtir.graph.ops import StridedSlice


@dataclass(frozen=True, slots=True)
class _Axis:
    """What is taken of one input axis; a dropped axis is not in the output's shape."""

    begin: int
    stride: int
    extent: int
    dropped: bool = False


def slice_(operands: Operands) -> Converted:
    """SLICE: data, begin, size; a size of -1 takes the rest."""
    shape = operands.input(0).shape
    begins = operands.integers(1, "the begin")
    sizes = operands.integers(2, "the size")
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


def strided_slice(operands: Operands) -> Converted:
    """STRIDED_SLICE: data, begin, end, strides, read as in numpy's `data[b:e:s, ...]`.

    Bit i of a mask speaks of entry i: take the axis from its start (begin_mask), to its end
    (end_mask), take only `begin` and drop the axis (shrink_axis_mask), insert an axis of one
    (new_axis_mask), take all axes that no entry speaks of (ellipsis_mask, one bit at most).
    Where several bits are set, ellipsis goes before new axis, new axis before shrink.
    """
    options = operands.table(StridedSliceOptions)
    if options.offset:
        raise operands.unsupported(
            "its end counts from its begin (option offset)",
            "an end that is an index",
            "slice with fixed indices",
        )
    entries = tuple(operands.integers(i, n) for i, n in ((1, "the begin"), (2, "the end")))
    strides = operands.integers(3, "the strides")
    if not len(entries[0]) == len(entries[1]) == len(strides):
        raise operands.malformed(
            f"begin {entries[0]}, end {entries[1]} and strides {strides} differ in length"
        )
    return _resolve(operands, options, entries[0], entries[1], strides)


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
            first = None if _bit(options.begin_mask, i) else begin
            last = None if _bit(options.end_mask, i) else end
            taken = [_range(operands, shape[len(axes)], slice(first, last, stride))]
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
            f" take nothing of an axis of {extent}",
            "a part of the data that is not empty",
        )
    # A stride beyond the only element taken says nothing, and might not fit an index.
    return _Axis(taken.start, taken.step if len(taken) > 1 else 1, len(taken))


def _bit(mask: int, index: int) -> bool:
    return bool(mask >> index & 1)


def _converted(operands: Operands, axes: list[_Axis], shape: tuple[int, ...]) -> Converted:
    op = StridedSlice(
        begin=tuple(axis.begin for axis in axes),
        strides=tuple(axis.stride for axis in axes),
        extent=tuple(axis.extent for axis in axes),
    )
    return Converted(op, (operands.input(0),), shape)
