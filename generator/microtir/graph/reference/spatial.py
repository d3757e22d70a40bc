"""Convolution and pooling over images (N, H, W, C)."""

from __future__ import annotations

from functools import partial

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.graph.ops import (
    AveragePool2D,
    Conv2D,
    DepthwiseConv2D,
    MaxPool2D,
    Padding2D,
    Pool2D,
)
from microtir.graph.quantization import conv_params, pool_params
from microtir.graph.reference.arrays import Doubles, activate, as_output, stored
from microtir.graph.reference.linear import flat_rows, linear


def taps(
    image: Array,
    node: Node,
    window: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    padding: Padding2D,
    fill: float,
) -> Array:
    """Elements under the window at every output position.

    Returns (N, OH, OW, KH * KW, C); positions outside the image hold `fill`.
    """
    margins = ((0, 0), (padding.top, padding.bottom), (padding.left, padding.right), (0, 0))
    padded = np.pad(image, margins, constant_values=fill)
    _, rows, columns, _ = node.output.shape
    parts = []
    for y in range(window[0]):
        for x in range(window[1]):
            top, left = y * dilations[0], x * dilations[1]
            bottom = top + (rows - 1) * strides[0] + 1
            right = left + (columns - 1) * strides[1] + 1
            parts.append(padded[:, top : bottom : strides[0], left : right : strides[1], :])
    return np.stack(parts, axis=3)


def _conv_taps(op: Conv2D | DepthwiseConv2D, node: Node, image: Doubles) -> Array:
    _, high, wide, _ = node.inputs[1].shape
    return taps(image, node, (high, wide), op.strides, op.dilations, op.padding, 0.0)


def conv_2d(
    op: Conv2D, node: Node, image: Array, weights: Array, bias: Array | None = None
) -> Array:
    """CONV_2D: int8, float32, or float32 with int8 weights."""

    def sums(centred: Doubles, factors: Doubles) -> Doubles:
        columns = _conv_taps(op, node, centred)
        result: Doubles = columns.reshape(*columns.shape[:3], -1) @ flat_rows(factors).T
        return result

    params = partial(conv_params, op)
    return linear(node, op.activation, params, sums, image, weights, bias)


def depthwise_conv_2d(
    op: DepthwiseConv2D, node: Node, image: Array, weights: Array, bias: Array | None = None
) -> Array:
    """DEPTHWISE_CONV_2D: int8, float32, or float32 with int8 weights."""

    def sums(centred: Doubles, factors: Doubles) -> Doubles:
        columns = np.repeat(_conv_taps(op, node, centred), op.depth_multiplier, axis=-1)
        result: Doubles = (columns * factors.reshape(columns.shape[3:])).sum(axis=3)
        return result

    params = partial(conv_params, op)
    return linear(node, op.activation, params, sums, image, weights, bias)


def average_pool_2d(op: AveragePool2D, node: Node, image: Array) -> Array:
    """AVERAGE_POOL_2D; int8 divides by the count inside the image, halves away from zero."""
    output = node.output.type
    inside = _pool_taps(op, node, np.ones_like(image, np.int64), 0)
    count = inside.sum(axis=3)
    if output.dtype.is_float:
        total = _pool_taps(op, node, image.astype(np.float64), 0.0).sum(axis=3)
        return as_output(activate(total / count, op.activation), output)
    total = _pool_taps(op, node, stored(image), 0).sum(axis=3)
    magnitude = (np.abs(total) + count // 2) // count
    params = pool_params(op, output)
    average = np.where(total < 0, -magnitude, magnitude)
    return as_output(np.clip(average, params.activation_min, params.activation_max), output)


def max_pool_2d(op: MaxPool2D, node: Node, image: Array) -> Array:
    """MAX_POOL_2D; compares stored values."""
    output = node.output.type
    if output.dtype.is_float:
        largest = _pool_taps(op, node, image, -np.inf).max(axis=3)
        return as_output(activate(largest, op.activation), output)
    largest = _pool_taps(op, node, image, output.dtype.min).max(axis=3)
    params = pool_params(op, output)
    return as_output(np.clip(largest, params.activation_min, params.activation_max), output)


def _pool_taps(op: Pool2D, node: Node, image: Array, fill: float) -> Array:
    return taps(image, node, op.window, op.strides, (1, 1), op.padding, fill)
