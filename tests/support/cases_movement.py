"""Recipes of operators that move elements without computing."""

from __future__ import annotations

import math

import numpy as np

from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.operators.movement.tflite import (
    ConcatenationOptions,
    PackOptions,
    ReshapeOptions,
    SplitOptions,
    SqueezeOptions,
    StridedSliceOptions,
    UnpackOptions,
)
from tests.support.sketch import Case, Quant, Shape, Sketch


def _quant(s: Sketch) -> Quant | None:
    return s.quant() if s.is_int8 else None


def pad(s: Sketch) -> Case:
    """Draw a case: PAD with the zero point, PADV2 with a value of its own."""
    shape = s.shape(1, 4)
    quant = _quant(s)
    made = s.taken_as(quant)
    before = [s.integer(0, 2) for _ in shape]
    after = [s.integer(0, 2) for _ in shape]
    result = tuple(b + n + a for b, n, a in zip(before, shape, after, strict=True))
    pairs = np.array([before, after], np.int32).T
    inputs = [s.input(shape, quant), s.constant("paddings", pairs)]
    if s.code is BuiltinOperator.PADV2:
        computed = s.chance(0.3)
        value = s.values((1,))
        inputs.append(s.input((1,), made) if computed else s.constant("value", value, made))
    return s.finish(inputs, s.output(result, made))


def concatenation(s: Sketch) -> Case:
    """Draw a case: CONCATENATION of one to four parts along any axis."""
    shape = list(s.shape(1, 4))
    axis = s.integer(0, len(shape) - 1)
    quant = _quant(s)
    parts = [s.integer(1, 4) for _ in range(s.integer(1, 4))]
    inputs = [s.input((*shape[:axis], part, *shape[axis + 1 :]), quant) for part in parts]
    result = (*shape[:axis], sum(parts), *shape[axis + 1 :])
    named = axis - len(shape) if s.chance(0.3) else axis
    return s.finish(inputs, s.output(result, quant), ConcatenationOptions(named))


def reshape(s: Sketch) -> Case:
    """Draw a case: RESHAPE to another factorisation, sometimes with a -1."""
    shape = s.shape(1, 4)
    elements = math.prod(shape)
    divisor = next(n for n in range(s.integer(1, elements), 0, -1) if elements % n == 0)
    result = s.pick((elements,), (divisor, elements // divisor), (1, elements // divisor, divisor))
    quant = _quant(s)
    made = s.taken_as(quant)
    wanted = list(result)
    if s.chance(0.4):
        wanted[s.integer(0, len(wanted) - 1)] = -1
    inputs = [s.input(shape, quant), s.ints("shape", *wanted)]
    return s.finish(inputs, s.output(result, made), ReshapeOptions(tuple(wanted)))


def squeeze(s: Sketch) -> Case:
    """Draw a case: SQUEEZE of named or of all unit axes."""
    shape: Shape = tuple(1 if s.chance(0.4) else n for n in s.shape(2, 4))
    units = [axis for axis, extent in enumerate(shape) if extent == 1]
    named = [axis for axis in units if s.chance(0.6)]
    dropped = named or units
    result = tuple(n for axis, n in enumerate(shape) if axis not in dropped)
    quant = _quant(s)
    made = s.taken_as(quant)
    x = s.input(shape, quant)
    return s.finish([x], s.output(result, made), SqueezeOptions(tuple(named)))


def expand_dims(s: Sketch) -> Case:
    """Draw a case: EXPAND_DIMS at any place, counted from either end."""
    shape = s.shape(1, 3)
    axis = s.integer(0, len(shape))
    quant = _quant(s)
    made = s.taken_as(quant)
    named = axis - len(shape) - 1 if s.chance(0.3) else axis
    inputs = [s.input(shape, quant), s.ints("axis", named)]
    return s.finish(inputs, s.output((*shape[:axis], 1, *shape[axis:]), made))


def transpose(s: Sketch) -> Case:
    """Draw a case: TRANSPOSE by any permutation."""
    shape = s.shape(1, 4)
    permutation = [int(axis) for axis in s.rng.permutation(len(shape))]
    quant = _quant(s)
    made = s.taken_as(quant)
    inputs = [s.input(shape, quant), s.ints("permutation", *permutation)]
    return s.finish(inputs, s.output(tuple(shape[axis] for axis in permutation), made))


def split(s: Sketch) -> Case:
    """Draw a case: SPLIT into one to four equal parts."""
    shape = list(s.shape(1, 4))
    axis, parts = s.integer(0, len(shape) - 1), s.integer(1, 4)
    whole = (*shape[:axis], shape[axis] * parts, *shape[axis + 1 :])
    quant = _quant(s)
    made = s.taken_as(quant)
    axis_tensor = s.ints("axis", axis - len(shape) if s.chance(0.3) else axis)
    x = s.input(whole, quant)
    outputs = [s.output(tuple(shape), made, name=f"output{i}") for i in range(parts)]
    return s.finish([axis_tensor, x], outputs, SplitOptions(parts))


def split_v(s: Sketch) -> Case:
    """Draw a case: SPLIT_V into one to four parts, of which a -1 may say the rest."""
    shape = list(s.shape(1, 4))
    axis = s.integer(0, len(shape) - 1)
    sizes = [s.integer(1, 4) for _ in range(s.integer(1, 4))]
    whole = (*shape[:axis], sum(sizes), *shape[axis + 1 :])
    quant = _quant(s)
    made = s.taken_as(quant)
    x = s.input(whole, quant)
    parts = [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]
    outputs = [s.output(part, made, name=f"output{i}") for i, part in enumerate(parts)]
    if s.chance(0.3):
        sizes[s.integer(0, len(sizes) - 1)] = -1
    named = s.integer(0, 1) * -len(shape) + axis
    inputs = [x, s.ints("sizes", *sizes), s.constant("axis", np.array(named, np.int32))]
    return s.finish(inputs, outputs, SplitOptions(len(parts)))


def pack(s: Sketch) -> Case:
    """Draw a case: PACK of one to four tensors along any new axis."""
    shape = s.shape(0, 3)
    axis = s.integer(0, len(shape))
    quant = _quant(s)
    made = s.taken_as(quant)
    inputs = [s.input(shape, quant) for _ in range(s.integer(1, 4))]
    result = (*shape[:axis], len(inputs), *shape[axis:])
    named = axis - len(shape) - 1 if s.chance(0.3) else axis
    return s.finish(inputs, s.output(result, made), PackOptions(len(inputs), named))


def unpack(s: Sketch) -> Case:
    """Draw a case: UNPACK along any axis."""
    shape = s.shape(1, 4)
    axis = s.integer(0, len(shape) - 1)
    quant = _quant(s)
    made = s.taken_as(quant)
    part = (*shape[:axis], *shape[axis + 1 :])
    x = s.input(shape, quant)
    outputs = [s.output(part, made, name=f"output{i}") for i in range(shape[axis])]
    named = axis - len(shape) if s.chance(0.3) else axis
    return s.finish([x], outputs, UnpackOptions(len(outputs), named))


def reverse(s: Sketch) -> Case:
    """Draw a case: REVERSE_V2 of axes beside each other, which is all that kernels take."""
    shape = s.shape(1, 4)
    first = s.integer(0, len(shape) - 1)
    last = s.integer(first, len(shape) - 1)
    quant = _quant(s)
    made = s.taken_as(quant)
    x = s.input(shape, quant)
    return s.finish([x, s.ints("axes", *range(first, last + 1))], s.output(shape, made))


def slice_(s: Sketch) -> Case:
    """Draw a case: SLICE with sizes and with -1, or with a begin that is an input."""
    shape = s.shape(1, 4)
    begin = [s.integer(0, extent - 1) for extent in shape]
    size = [s.integer(1, extent - b) for extent, b in zip(shape, begin, strict=True)]
    named = [
        -1 if b + n == extent and s.chance(0.5) else n
        for extent, b, n in zip(shape, begin, size, strict=True)
    ]
    quant = _quant(s)
    made = s.taken_as(quant)
    x = s.input(shape, quant)
    if s.chance(0.3):
        dtype = s.pick(np.int32, np.int64)
        place = s.input((len(shape),), values=np.array(begin, dtype))
        inputs = [x, place, s.constant("size", np.array(size, dtype))]
    else:
        inputs = [x, s.ints("begin", *begin), s.ints("size", *named)]
    return s.finish(inputs, s.output(tuple(size), made))


_DROPS_MASKS = ("float32", "int8", "int16", "int32", "bool")
"""Types for which tflite-micro has STRIDED_SLICE, with no heed to some of its options."""


def strided_slice(s: Sketch) -> Case:
    """Draw a case: STRIDED_SLICE with strides of both signs, begin, end and shrink masks.

    For types that only LiteRT has, also with ends that are offsets, or new axes and an ellipsis:
    all of them together crash it.
    """
    shape = s.shape(1, 4)
    is_full = s.dtype.name not in _DROPS_MASKS
    offset = is_full and s.chance(0.3)
    has_axes = is_full and not offset
    ellipsis = s.integer(0, len(shape) - 1) if has_axes and s.chance(0.4) else None
    begin: list[int] = []
    end: list[int] = []
    strides: list[int] = []
    result: list[int] = []
    begin_mask = end_mask = shrink_mask = new_mask = 0
    for axis, extent in enumerate(shape):
        if has_axes and s.chance(0.2):
            new_mask |= 1 << len(begin)
            begin, end, strides = [*begin, 0], [*end, 0], [*strides, 1]
            result.append(1)
        entry = len(begin)
        stride = s.pick(1, 1, 2, 3, -1, -2)
        first, last = sorted((s.integer(0, extent - 1), s.integer(0, extent - 1)))
        start, stop = (first, last + 1) if stride > 0 else (last, first - 1)
        if axis == ellipsis:
            start, stop, stride = 0, extent, 1
        elif s.chance(0.15):
            shrink_mask |= 1 << entry
            start, stop, stride = first, first + 1, 1
        elif s.chance(0.25):
            begin_mask |= 1 << entry
            start = 0 if stride > 0 else extent - 1
        if axis != ellipsis and (stop < 0 or (s.chance(0.2) and not shrink_mask >> entry & 1)):
            end_mask |= 1 << entry
            stop = extent if stride > 0 else -1
        begin.append(start - extent if s.chance(0.2) else start)
        end.append(stop - start if offset else max(stop, 0))
        strides.append(stride)
        if not shrink_mask >> entry & 1:
            result.append(len(range(start, stop, stride)))
    ellipsis_mask = 0
    if ellipsis is not None:
        entries = [entry for entry in range(len(begin)) if not new_mask >> entry & 1]
        ellipsis_mask = 1 << entries[ellipsis]
    quant = _quant(s)
    made = s.taken_as(quant)
    inputs = [
        s.input(shape, quant),
        s.ints("begin", *begin),
        s.ints("end", *end),
        s.ints("strides", *strides),
    ]
    options = StridedSliceOptions(
        begin_mask, end_mask, ellipsis_mask, new_mask, shrink_mask, offset
    )
    return s.finish(inputs, s.output(tuple(result), made), options, version=1)
