"""Readers of operators over images: convolutions, pooling, resizing."""

from __future__ import annotations

from typing import TypeVar

from microtir.frontend.operands import Converted, Operands
from microtir.frontend.tflite_schema import (
    BuiltinOperator,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    Padding,
    Pool2DOptions,
    ResizeBilinearOptions,
    ResizeNearestNeighborOptions,
)
from microtir.graph.ops import (
    AveragePool2D,
    Conv2D,
    DepthwiseConv2D,
    MaxPool2D,
    Padding2D,
    Pool2D,
    ResizeBilinear,
    ResizeNearestNeighbor,
)

PoolT = TypeVar("PoolT", bound=Pool2D)

_MAX_WINDOW = 65_535  # keeps every index of a window within 32 bits


def conv_2d(operands: Operands) -> Converted:
    """CONV_2D: image, weights (O, KH, KW, I), optional bias."""
    options = operands.table(Conv2DOptions)
    _, _, _, channels = operands.image(0)
    _, height, width, inputs = operands.image(1)
    if inputs and inputs < channels and channels % inputs == 0:
        raise operands.unsupported(
            f"it is a grouped convolution: {channels} channels, weights for {inputs}",
            "weights for all channels",
            "split the layer into one convolution per group, or use a depthwise one",
        )
    strides = (options.stride_h, options.stride_w)
    dilations = (options.dilation_h, options.dilation_w)
    padding = _padding(operands, (height, width), strides, dilations, options.padding)
    op = Conv2D(strides, dilations, padding, operands.activation(options.activation))
    return Converted(op, operands.with_weights())


def depthwise_conv_2d(operands: Operands) -> Converted:
    """DEPTHWISE_CONV_2D: image, weights (1, KH, KW, I*M), optional bias."""
    options = operands.table(DepthwiseConv2DOptions)
    _, _, _, channels = operands.image(0)
    _, height, width, outputs = operands.image(1)
    # Some converters leave the multiplier at 0; the shapes give it.
    multiplier = options.depth_multiplier or outputs // max(channels, 1)
    strides = (options.stride_h, options.stride_w)
    dilations = (options.dilation_h, options.dilation_w)
    padding = _padding(operands, (height, width), strides, dilations, options.padding)
    activation = operands.activation(options.activation)
    op = DepthwiseConv2D(strides, dilations, padding, multiplier, activation)
    return Converted(op, operands.with_weights())


def average_pool_2d(operands: Operands) -> Converted:
    """AVERAGE_POOL_2D."""
    return _pool(operands, AveragePool2D)


def max_pool_2d(operands: Operands) -> Converted:
    """MAX_POOL_2D."""
    return _pool(operands, MaxPool2D)


def resize(operands: Operands) -> Converted:
    """RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR: image, (new height, new width)."""
    batch, _, _, channels = operands.image(0)
    size = operands.integers(1, "the new size")
    if len(size) != 2 or min(size) < 1:
        raise operands.malformed(f"the new size is {size}", "height and width, both above 0")
    if operands.code is BuiltinOperator.RESIZE_BILINEAR:
        bilinear = operands.table(ResizeBilinearOptions)
        corners, centers = bilinear.align_corners, bilinear.half_pixel_centers
        kind: type[ResizeBilinear | ResizeNearestNeighbor] = ResizeBilinear
    else:
        nearest = operands.table(ResizeNearestNeighborOptions)
        corners, centers = nearest.align_corners, nearest.half_pixel_centers
        kind = ResizeNearestNeighbor
    if corners and centers:
        raise operands.malformed(
            "align_corners and half_pixel_centers are both set", "one of them, or none"
        )
    op = kind(align_corners=corners, half_pixel_centers=centers)
    return Converted(op, (operands.input(0),), (batch, *size, channels))


def _pool(operands: Operands, kind: type[PoolT]) -> Converted:
    options = operands.table(Pool2DOptions)
    window = (options.filter_h, options.filter_w)
    strides = (options.stride_h, options.stride_w)
    padding = _padding(operands, window, strides, (1, 1), options.padding)
    op = kind(window, strides, padding, operands.activation(options.activation))
    return Converted(op, (operands.input(0),))


def _padding(
    operands: Operands,
    window: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    padding: Padding,
) -> Padding2D:
    """The explicit padding of a windowed operator."""
    _, height, width, _ = operands.image(0)
    for name, pair in (("window", window), ("strides", strides), ("dilations", dilations)):
        if not 1 <= min(pair) <= max(pair) <= _MAX_WINDOW:
            raise operands.malformed(f"{name}: {pair[0]} by {pair[1]}", f"1 to {_MAX_WINDOW} each")
    if padding is Padding.VALID:
        return Padding2D()
    top, bottom = _same(height, window[0], strides[0], dilations[0])
    left, right = _same(width, window[1], strides[1], dilations[1])
    return Padding2D(top, bottom, left, right)


def _same(size: int, window: int, stride: int, dilation: int) -> tuple[int, int]:
    """Elements that SAME adds before and after an axis.

    There are ceil(size / stride) positions; an odd element of padding goes to the end.
    """
    last = (-(-size // stride) - 1) * stride
    total = max(last + (window - 1) * dilation + 1 - size, 0)
    return total // 2, total - total // 2
