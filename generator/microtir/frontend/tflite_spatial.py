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
    batch, _, _, channels = operands.image(0)
    weights = operands.require_computable(1, "the weights")
    outputs, height, width, inputs = operands.image(1)
    if inputs != channels:
        if inputs and channels % inputs == 0:
            raise operands.unsupported(
                f"it is a grouped convolution: {channels} channels, weights for {inputs}",
                "weights for all channels",
                "split the layer into one convolution per group, or use a depthwise one",
            )
        raise operands.malformed(
            f"the image has {channels} channels, the weights {weights.shape} are for {inputs}"
        )
    strides = (options.stride_h, options.stride_w)
    dilations = (options.dilation_h, options.dilation_w)
    rows, columns, padding = _window(operands, (height, width), strides, dilations, options.padding)
    op = Conv2D(strides, dilations, padding, operands.activation(options.activation))
    shape = (batch, rows, columns, outputs)
    return Converted(op, operands.with_bias(outputs), (shape,))


def depthwise_conv_2d(operands: Operands) -> Converted:
    """DEPTHWISE_CONV_2D: image, weights (1, KH, KW, I*M), optional bias."""
    options = operands.table(DepthwiseConv2DOptions)
    batch, _, _, channels = operands.image(0)
    weights = operands.require_computable(1, "the weights")
    first, height, width, outputs = operands.image(1)
    if first != 1 or outputs % channels:
        raise operands.malformed(
            f"the image has {channels} channels, the weights have the shape {weights.shape}",
            "(1, KH, KW, channels * multiplier)",
        )
    # Some converters leave the multiplier at 0; the shapes give it.
    if options.depth_multiplier not in (0, outputs // channels):
        raise operands.malformed(
            f"depth_multiplier is {options.depth_multiplier}", str(outputs // channels)
        )
    strides = (options.stride_h, options.stride_w)
    dilations = (options.dilation_h, options.dilation_w)
    rows, columns, padding = _window(operands, (height, width), strides, dilations, options.padding)
    activation = operands.activation(options.activation)
    op = DepthwiseConv2D(strides, dilations, padding, outputs // channels, activation)
    shape = (batch, rows, columns, outputs)
    return Converted(op, operands.with_bias(outputs), (shape,))


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
    return Converted(op, (operands.input(0),), ((batch, *size, channels),))


def _pool(operands: Operands, kind: type[PoolT]) -> Converted:
    options = operands.table(Pool2DOptions)
    batch, _, _, channels = operands.image(0)
    window = (options.filter_h, options.filter_w)
    strides = (options.stride_h, options.stride_w)
    rows, columns, padding = _window(operands, window, strides, (1, 1), options.padding)
    op = kind(window, strides, padding, operands.activation(options.activation))
    return Converted(op, (operands.input(0),), ((batch, rows, columns, channels),))


def _window(
    operands: Operands,
    window: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    padding: Padding,
) -> tuple[int, int, Padding2D]:
    """Rows and columns of the result of a windowed operator, and its explicit padding."""
    _, height, width, _ = operands.image(0)
    for name, pair in (("window", window), ("strides", strides), ("dilations", dilations)):
        if not 1 <= min(pair) <= max(pair) <= _MAX_WINDOW:
            raise operands.malformed(f"{name}: {pair[0]} by {pair[1]}", f"1 to {_MAX_WINDOW} each")
    rows, top, bottom = _extent(operands, height, window[0], strides[0], dilations[0], padding)
    columns, left, right = _extent(operands, width, window[1], strides[1], dilations[1], padding)
    return rows, columns, Padding2D(top, bottom, left, right)


def _extent(
    operands: Operands, size: int, window: int, stride: int, dilation: int, padding: Padding
) -> tuple[int, int, int]:
    """Positions of a window along one axis, elements added before and after.

    SAME gives ceil(size / stride) positions and puts the odd element of padding at the end.
    """
    reach = (window - 1) * dilation + 1
    if padding is Padding.SAME:
        positions = -(-size // stride)
        total = max((positions - 1) * stride + reach - size, 0)
        return positions, total // 2, total - total // 2
    if reach > size:
        raise operands.malformed(
            f"a window that reaches over {reach} does not fit into {size}",
            "with VALID padding the window is at most as large as the image",
        )
    return (size - reach) // stride + 1, 0, 0
