"""Recipes of operators that multiply their input by weights."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from microtir.operators.common.tflite_schema import (
    BuiltinOperator,
    Options,
    Padding,
    TfliteType,
)
from microtir.operators.convolution.tflite import Conv2DOptions, DepthwiseConv2DOptions
from microtir.operators.convolution_3d.tflite import Conv3DOptions
from microtir.operators.dense.tflite import FullyConnectedOptions
from microtir.operators.matmul.tflite import BatchMatMulOptions
from microtir.operators.transposed_convolution.tflite import TransposeConvOptions
from tests.support.cases_spatial import draw_window, positions
from tests.support.sketch import Array, Case, Quant, Shape, Sketch

_CODE = BuiltinOperator
_INT4 = (_CODE.CONV_2D, _CODE.DEPTHWISE_CONV_2D, _CODE.FULLY_CONNECTED)

_BIASES = {TfliteType.INT16: np.int16, TfliteType.INT32: np.int32}


@dataclass(frozen=True)
class _Weighted:
    """Inputs of a weighted sum, an output quantisation that fits its results, an option."""

    inputs: list[int]
    quant: Quant | None
    bias_type: TfliteType = TfliteType.FLOAT32


def _weights(s: Sketch, shape: Shape) -> Array:
    """Draw weights, which are of int8 beside data of int16."""
    return s.values(shape, np.int8 if s.dtype == np.int16 else None)


def _linear(s: Sketch, x: int, x_quant: Quant | None, weights: Array, axis: int) -> _Weighted:
    channels = weights.shape[axis]
    with_bias = s.chance(0.8)
    if x_quant is None:
        inputs = [x, s.constant("weights", weights)]
        if with_bias:
            inputs.append(s.constant("bias", s.values((channels,))))
        return _Weighted(inputs, None)
    is_int4 = s.is_int8 and s.code in _INT4 and s.chance(0.15)
    is_per_tensor = is_int4 and s.code is BuiltinOperator.FULLY_CONNECTED
    per_channel = not is_per_tensor and s.chance(0.7)
    scales = [s.scale() for _ in range(channels if per_channel else 1)]
    products = [float(np.float32(x_quant.scale * scale)) for scale in scales]
    stored = weights >> 4 if is_int4 else weights
    inputs = [x, s.weights(stored, scales, axis, is_int4=is_int4)]
    bias_type, reach = _bias_type(s), 20_000
    kind = _BIASES.get(bias_type, np.int64) if s.dtype == np.int16 else np.int32
    spread = max(products) * 60 * math.sqrt(weights.size // channels)
    if s.dtype == np.int16 and kind is not np.int32:
        is_wide = with_bias and kind is np.int64 and s.chance(0.3)
        if kind is np.int64:
            reach = 1 << (38 if is_wide else 22)
        # With the least one, factors are above 1/4.
        spread *= 1 << 11 if is_wide else s.pick(1.0, 1.0, 0.02)
    if with_bias:
        bias = np.asarray(s.rng.integers(-reach, reach, channels))
        inputs.append(s.bias(bias.astype(kind), products))
    out_scale = float(np.float32(spread * s.pick(0.2, 1.0, 1.0, 4.0, 50.0)))
    return _Weighted(inputs, Quant(out_scale, s.zero_point(s.dtype)), bias_type)


def _bias_type(s: Sketch) -> TfliteType:
    """Draw what the width of int16 sums depends on where there is no bias."""
    if s.dtype != np.int16 or s.code is BuiltinOperator.DEPTHWISE_CONV_2D:
        return TfliteType.FLOAT32
    if s.code is BuiltinOperator.TRANSPOSE_CONV:
        return TfliteType(s.pick(TfliteType.INT64, TfliteType.INT16))
    return TfliteType(s.pick(TfliteType.FLOAT32, TfliteType.INT32, TfliteType.INT64))


def conv(s: Sketch) -> Case:
    """Draw a case: CONV_2D and DEPTHWISE_CONV_2D, per channel and per tensor."""
    depthwise = s.code is BuiltinOperator.DEPTHWISE_CONV_2D
    batch, height, width, depth = shape = s.image()
    padding, high, wide, dilation_h, dilation_w = draw_window(s, height, width)
    multiplier = s.integer(1, 3)
    channels = depth * multiplier if depthwise else s.integer(1, 6)
    w_shape = (1, high, wide, channels) if depthwise else (channels, high, wide, depth)
    if not depthwise and s.chance(0.15):
        groups = s.pick(*(n for n in range(1, depth + 1) if depth % n == 0))
        channels = groups * multiplier
        w_shape = (channels, high, wide, depth // groups)
    x_quant = s.quant(s.dtype) if s.is_quantised else None
    x = s.input(shape, x_quant)
    linear = _linear(s, x, x_quant, _weights(s, w_shape), 3 if depthwise else 0)
    stride_h, stride_w = s.pick((1, 1), (1, 1), (2, 2), (3, 3), (s.integer(1, 3), s.integer(1, 3)))
    rows = positions(height, (high - 1) * dilation_h + 1, stride_h, padding)
    columns = positions(width, (wide - 1) * dilation_w + 1, stride_w, padding)
    options: Options = Conv2DOptions(
        padding, stride_w, stride_h, s.activation(), dilation_w, dilation_h, linear.bias_type
    )
    if depthwise:
        options = DepthwiseConv2DOptions(
            padding, stride_w, stride_h, multiplier, s.activation(), dilation_w, dilation_h
        )
    output = s.output((batch, rows, columns, channels), linear.quant)
    return s.finish(linear.inputs, output, options)


def transpose_conv(s: Sketch) -> Case:
    """Draw a TRANSPOSE_CONV with more rows and columns than windows reach, or fewer."""
    batch, height, width, depth = shape = s.image(6)
    padding, channels = Padding(s.pick(0, 1)), s.integer(1, 6)
    high, wide, stride_h, stride_w = (s.integer(1, 4) for _ in range(4))
    x_quant = s.quant(s.dtype) if s.is_quantised else None
    x = s.input(shape, x_quant)
    linear = _linear(s, x, x_quant, _weights(s, (channels, high, wide, depth)), 0)

    def extent(size: int, taps: int, stride: int) -> int:
        whole = size * stride if padding is Padding.SAME else (size - 1) * stride + taps
        return max(1, whole + int(s.pick(0, 0, 0, -1, 1, -stride)))

    result = (batch, extent(height, high, stride_h), extent(width, wide, stride_w), channels)
    options = TransposeConvOptions(padding, stride_w, stride_h, s.activation())
    inputs = [s.ints("shape", *result), linear.inputs[1], x, *linear.inputs[2:]]
    return s.finish(inputs, s.output(result, linear.quant), options)


def fully_connected(s: Sketch) -> Case:
    """Draw a FULLY_CONNECTED of rank 1 to 4, whose rows may be joined to those of weights."""
    rows, depth, channels = s.integer(1, 4), s.integer(1, 40), s.integer(1, 9)
    joined = s.pick(*(parts for parts in range(1, depth + 1) if depth % parts == 0))
    shape = s.pick(
        (rows, depth), (rows * joined, depth // joined), (1, rows, depth), (rows, 1, 1, depth)
    )
    x_quant = s.quant(s.dtype) if s.is_quantised else None
    x = s.input(shape, x_quant)
    linear = _linear(s, x, x_quant, _weights(s, (channels, depth)), 0)
    keep = shape[-1] == depth and s.chance(0.3)
    out_shape = (*shape[:-1], channels) if keep else (rows, channels)
    options = FullyConnectedOptions(
        activation=s.activation(), keep_num_dims=keep, quantized_bias_type=linear.bias_type
    )
    return s.finish(linear.inputs, s.output(out_shape, linear.quant), options)


def batch_matmul(s: Sketch) -> Case:
    """Draw a BATCH_MATMUL: outer axes that broadcast, either side turned, the second constant."""
    rows, depth, columns = s.integer(1, 5), s.integer(1, 20), s.integer(1, 6)
    adj_x, adj_y = s.chance(0.4), s.chance(0.4)
    outer = tuple(s.integer(1, 3) for _ in range(s.integer(0, 3)))
    seen = [tuple(1 if s.chance(0.3) else n for n in outer)[int(s.pick(0, 0, *range(len(outer)))) :]
            for _ in range(2)]  # fmt: skip
    first = (*seen[0], *((depth, rows) if adj_x else (rows, depth)))
    second = (*seen[1], *((columns, depth) if adj_y else (depth, columns)))
    x_quant, y_quant = (s.quant(s.dtype) if s.is_quantised else None for _ in range(2))
    x, values = s.input(first, x_quant), s.values(second)
    is_constant = s.chance(0.3)
    y = s.constant("right", values, y_quant) if is_constant else s.input(second, y_quant, values)
    out_quant = None
    if x_quant is not None and y_quant is not None:
        ratio = s.pick(0.2, 1.0, 1.0, 4.0, 50.0) * (60 if s.is_int8 else 16_000)
        spread = x_quant.scale * y_quant.scale * math.sqrt(depth) * ratio
        out_quant = Quant(float(np.float32(spread)), s.zero_point(s.dtype))
    result = (*np.broadcast_shapes(*seen), rows, columns)
    return s.finish([x, y], s.output(result, out_quant), BatchMatMulOptions(adj_x, adj_y))


def conv_3d(s: Sketch) -> Case:
    """Draw a CONV_3D."""
    extents, depth, channels = [s.integer(1, 5) for _ in range(3)], s.integer(1, 4), s.integer(1, 4)
    padding = Padding(s.pick(0, 1))
    taps, strides = ([s.integer(1, 3) for _ in range(3)] for _ in range(2))
    dilations = [s.integer(1, 2) for _ in range(3)]
    if padding is Padding.VALID:
        taps = [min(k, n) for k, n in zip(taps, extents, strict=True)]
        dilations = [1, 1, 1]
    result = [
        positions(n, (k - 1) * d + 1, stride, padding)
        for n, k, d, stride in zip(extents, taps, dilations, strides, strict=True)
    ]
    batch = s.integer(1, 2)
    x = s.input((batch, *extents, depth))
    linear = _linear(s, x, None, s.values((*taps, depth, channels)), 4)
    options = Conv3DOptions(
        padding, strides[0], strides[2], strides[1], s.activation(),
        dilations[0], dilations[2], dilations[1],
    )  # fmt: skip
    return s.finish(linear.inputs, s.output((batch, *result, channels)), options)
