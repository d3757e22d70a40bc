"""Recipes of operators that accumulate or resize."""

from __future__ import annotations

import math

import numpy as np

from microtir.operators.common.tflite_schema import BuiltinOperator, Options, Padding
from microtir.operators.convolution.tflite import Conv2DOptions, DepthwiseConv2DOptions
from microtir.operators.dense.tflite import FullyConnectedOptions
from microtir.operators.pooling.tflite import Pool2DOptions
from microtir.operators.reduction.tflite import ReducerOptions
from microtir.operators.resize.tflite import ResizeBilinearOptions, ResizeNearestNeighborOptions
from tests.support.sketch import Array, Case, Quant, Shape, Sketch


def _positions(size: int, reach: int, stride: int, padding: Padding) -> int:
    return -(-size // stride) if padding is Padding.SAME else (size - reach) // stride + 1


def _window(s: Sketch, height: int, width: int) -> tuple[Padding, int, int, int, int]:
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


def _linear(s: Sketch, x: int, x_quant: Quant | None, weights: Array, axis: int) -> tuple[
    list[int], Quant | None
]:  # fmt: skip
    """Return inputs of a weighted sum, and an output quantisation that fits its results."""
    channels = weights.shape[axis]
    with_bias = s.chance(0.8)
    if x_quant is None:
        inputs = [x, s.constant("weights", weights)]
        if with_bias:
            inputs.append(s.constant("bias", s.values((channels,))))
        return inputs, None
    per_channel = s.chance(0.7)
    scales = [s.scale() for _ in range(channels if per_channel else 1)]
    products = [float(np.float32(x_quant.scale * scale)) for scale in scales]
    inputs = [x, s.weights(weights, scales, axis)]
    if with_bias:
        bias = np.asarray(s.rng.integers(-20_000, 20_000, channels), np.int32)
        inputs.append(s.bias(bias, products))
    terms = weights.size // channels
    spread = max(products) * 60 * math.sqrt(terms)
    out_scale = float(np.float32(spread * s.pick(0.2, 1.0, 1.0, 4.0, 50.0)))
    return inputs, Quant(out_scale, s.zero_point())


def conv(s: Sketch) -> Case:
    """Draw a case: CONV_2D and DEPTHWISE_CONV_2D, per channel and per tensor."""
    depthwise = s.code is BuiltinOperator.DEPTHWISE_CONV_2D
    batch, height, width, depth = shape = s.image()
    padding, high, wide, dilation_h, dilation_w = _window(s, height, width)
    multiplier = s.integer(1, 3)
    channels = depth * multiplier if depthwise else s.integer(1, 6)
    w_shape = (1, high, wide, channels) if depthwise else (channels, high, wide, depth)
    x_quant = s.quant() if s.is_int8 else None
    x = s.input(shape, x_quant)
    inputs, y_quant = _linear(s, x, x_quant, s.values(w_shape), 3 if depthwise else 0)
    stride_h, stride_w = s.pick((1, 1), (1, 1), (2, 2), (3, 3), (s.integer(1, 3), s.integer(1, 3)))
    rows = _positions(height, (high - 1) * dilation_h + 1, stride_h, padding)
    columns = _positions(width, (wide - 1) * dilation_w + 1, stride_w, padding)
    options: Options = Conv2DOptions(
        padding, stride_w, stride_h, s.activation(), dilation_w, dilation_h
    )
    if depthwise:
        options = DepthwiseConv2DOptions(
            padding, stride_w, stride_h, multiplier, s.activation(), dilation_w, dilation_h
        )
    return s.finish(inputs, s.output((batch, rows, columns, channels), y_quant), options)


def fully_connected(s: Sketch) -> Case:
    """Draw a FULLY_CONNECTED of rank 1 to 4, whose rows may be joined to those of weights."""
    rows, depth, channels = s.integer(1, 4), s.integer(1, 40), s.integer(1, 9)
    joined = s.pick(*(parts for parts in range(1, depth + 1) if depth % parts == 0))
    shape = s.pick(
        (rows, depth), (rows * joined, depth // joined), (1, rows, depth), (rows, 1, 1, depth)
    )
    x_quant = s.quant() if s.is_int8 else None
    x = s.input(shape, x_quant)
    inputs, y_quant = _linear(s, x, x_quant, s.values((channels, depth)), 0)
    keep = shape[-1] == depth and s.chance(0.3)
    out_shape = (*shape[:-1], channels) if keep else (rows, channels)
    options = FullyConnectedOptions(activation=s.activation(), keep_num_dims=keep)
    return s.finish(inputs, s.output(out_shape, y_quant), options)


def pool(s: Sketch) -> Case:
    """Draw a case: AVERAGE_POOL_2D and MAX_POOL_2D: quantisation never changes."""
    batch, height, width, depth = shape = s.image()
    padding = Padding(s.pick(0, 1))
    high, wide = s.integer(1, 5), s.integer(1, 5)
    if padding is Padding.VALID:
        high, wide = min(high, height), min(wide, width)
    stride_h, stride_w = s.integer(1, 3), s.integer(1, 3)
    rows = _positions(height, high, stride_h, padding)
    columns = _positions(width, wide, stride_w, padding)
    quant = s.quant() if s.is_int8 else None
    options = Pool2DOptions(padding, stride_w, stride_h, wide, high, s.activation())
    x = s.input(shape, quant)
    return s.finish([x], s.output((batch, rows, columns, depth), quant), options)


def mean(s: Sketch) -> Case:
    """Draw a case: MEAN over any axes of rank 1 to 4, with and without rescaling."""
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
    x_quant = y_quant = s.quant() if s.is_int8 else None
    if x_quant is not None and s.chance(0.7):
        ratio = 2.0 ** s.rng.uniform(-3, 6)
        y_quant = Quant(float(np.float32(x_quant.scale * ratio)), s.zero_point())
    x = s.input(shape, x_quant)
    signed = [axis - len(shape) if s.chance(0.2) else axis for axis in axes]
    inputs = [x, s.ints("axes", *signed)]
    return s.finish(inputs, s.output(result, y_quant), ReducerOptions(keep_dims=keep))


def resize(s: Sketch) -> Case:
    """Draw a case: RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR, up and down."""
    batch, _, _, depth = shape = s.image()
    size = (s.integer(1, 20), s.integer(1, 20))
    corners, centers = s.pick((False, False), (True, False), (False, True))
    quant = s.quant() if s.is_int8 else None
    options: Options = ResizeNearestNeighborOptions(corners, centers)
    if s.code is BuiltinOperator.RESIZE_BILINEAR:
        options = ResizeBilinearOptions(corners, centers)
    inputs = [s.input(shape, quant), s.ints("size", *size)]
    return s.finish(inputs, s.output((batch, *size, depth), quant), options)
