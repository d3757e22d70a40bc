"""Recipes of operators that accumulate or resize."""

from __future__ import annotations

import numpy as np

from microtir.operators.common.tflite_schema import (
    BuiltinOperator,
    Options,
    Padding,
    TfliteType,
)
from microtir.operators.cumulation.tflite import CumsumOptions
from microtir.operators.pooling.tflite import Pool2DOptions
from microtir.operators.reduction.tflite import PlaceOptions, ReducerOptions
from microtir.operators.resize.tflite import ResizeBilinearOptions, ResizeNearestNeighborOptions
from tests.support.sketch import Case, Quant, Shape, Sketch


def positions(size: int, reach: int, stride: int, padding: Padding) -> int:
    """Return how many positions a window has along an axis."""
    return -(-size // stride) if padding is Padding.SAME else (size - reach) // stride + 1


def draw_window(s: Sketch, height: int, width: int) -> tuple[Padding, int, int, int, int]:
    """Return padding, window and dilation per axis; a VALID window fits into the image."""
    padding = Padding(s.pick(0, 1))
    high, wide, dilation_h, dilation_w = (s.integer(1, 4), s.integer(1, 4), 1, 1)
    if s.chance(0.3):
        dilation_h, dilation_w = s.integer(1, 3), s.integer(1, 3)
    if padding is Padding.VALID:
        high, wide = min(high, height), min(wide, width)
        dilation_h = min(dilation_h, (height - 1) // (high - 1)) if high > 1 else dilation_h
        dilation_w = min(dilation_w, (width - 1) // (wide - 1)) if wide > 1 else dilation_w
    return padding, high, wide, dilation_h, dilation_w


def pool(s: Sketch) -> Case:
    """Draw a case of pooling, which never changes the quantisation."""
    batch, height, width, depth = shape = s.image()
    padding = Padding(s.pick(0, 1))
    high, wide = s.integer(1, 5), s.integer(1, 5)
    if padding is Padding.VALID:
        high, wide = min(high, height), min(wide, width)
    stride_h, stride_w = s.integer(1, 3), s.integer(1, 3)
    rows = positions(height, high, stride_h, padding)
    columns = positions(width, wide, stride_w, padding)
    quant = s.quant(s.dtype) if s.dtype in (np.int8, np.int16) else None
    options = Pool2DOptions(padding, stride_w, stride_h, wide, high, s.activation())
    x = s.input(shape, quant)
    return s.finish([x], s.output((batch, rows, columns, depth), quant), options)


def reduction(s: Sketch) -> Case:
    """Draw a reduction over any axes of rank 1 to 4; sums and means with and without rescaling."""
    shape: Shape = s.image() if s.chance(0.6) else s.shape(1, 4)
    axes = [1, 2] if len(shape) == 4 and s.chance(0.5) else [
        axis for axis in range(len(shape)) if s.chance(0.5)
    ]  # fmt: skip
    axes = axes or [len(shape) - 1]
    keep = s.chance(0.5)
    result = tuple(
        1 if axis in axes else extent
        for axis, extent in enumerate(shape)
        if keep or axis not in axes
    )
    x_quant = y_quant = s.quant(s.dtype) if s.dtype in (np.int8, np.int16) else None
    rescales = s.code in (BuiltinOperator.MEAN, BuiltinOperator.SUM, BuiltinOperator.REDUCE_PROD)
    if x_quant is not None and rescales and s.chance(0.7):
        ratio = 2.0 ** s.rng.uniform(-3, 6)
        y_quant = Quant(float(np.float32(x_quant.scale * ratio)), s.zero_point(s.dtype))
    x = s.input(shape, x_quant)
    signed = [axis - len(shape) if s.chance(0.2) else axis for axis in axes]
    if s.chance(0.2):
        signed.append(s.pick(*signed))
    inputs = [x, s.ints("axes", *signed)]
    return s.finish(inputs, s.output(result, y_quant), ReducerOptions(keep_dims=keep))


def position(s: Sketch) -> Case:
    """Draw a case: ARG_MAX and ARG_MIN along any axis; small values make equals common."""
    shape = s.shape(1, 4)
    axis = s.integer(0, len(shape) - 1)
    values = s.values(shape) if s.chance(0.5) else s.values(shape).clip(-1, 1)
    if s.dtype.kind == "f" and s.chance(0.5):
        values = np.where(s.rng.random(shape) < 0.3, np.nan, values).astype(s.dtype)
    quant = s.quant() if s.is_int8 else None
    inputs = [s.input(shape, quant, values), s.ints("axis", axis - len(shape) * s.chance(0.3))]
    result = (*shape[:axis], *shape[axis + 1 :])
    return s.finish(inputs, s.output(result, dtype=np.int32), PlaceOptions(TfliteType.INT32))


def cumulation(s: Sketch) -> Case:
    """Draw a CUMSUM along any axis, also such that sums leave int32."""
    shape = s.shape(1, 4) if s.chance(0.8) else (2, s.integer(20, 40))
    axis = s.integer(0, len(shape) - 1)
    quant = s.quant() if s.is_int8 else None
    inputs = [s.input(shape, quant), s.ints("axis", axis - len(shape) * s.chance(0.3))]
    options = CumsumOptions(s.chance(0.5), s.chance(0.5))
    scale = None if quant is None else quant.scale * 2.0 ** s.rng.uniform(-2, 5)
    result = None if scale is None else Quant(float(np.float32(scale)), s.zero_point())
    return s.finish(inputs, s.output(shape, result), options)


def resize(s: Sketch) -> Case:
    """Draw a case: RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR, up and down."""
    batch, _, _, depth = shape = s.image()
    size = (s.integer(1, 20), s.integer(1, 20))
    corners, centers = s.pick((False, False), (True, False), (False, True))
    quant = s.quant(s.dtype) if s.dtype in (np.int8, np.uint8, np.int16) else None
    options: Options = ResizeNearestNeighborOptions(corners, centers)
    if s.code is BuiltinOperator.RESIZE_BILINEAR:
        options = ResizeBilinearOptions(corners, centers)
    inputs = [s.input(shape, quant), s.ints("size", *size)]
    return s.finish(inputs, s.output((batch, *size, depth), quant), options)
