"""Define CONV_2D and DEPTHWISE_CONV_2D by their attributes and rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from microtir.graph.ir import Node, SumRange
from microtir.graph.operator import Operator
from microtir.operators.common import linear, sums, types
from microtir.operators.common.attributes import Activation, Padding2D, SlidingWindow
from microtir.operators.common.images import by_first_axis, by_rows
from microtir.operators.common.shapes import Shape, check_bias, input_shape, require, windowed_shape
from microtir.operators.definition import weighted


@dataclass(frozen=True, slots=True)
class Conv2D(linear.WeightedOperator):
    """Inputs: image (N, H, W, G*I), weights (O, KH, KW, I), optional bias (O,).

    Output (N, OH, OW, O). Channels are in G groups: the first O/G output channels see the first I
    of the input, and so on. Padding counts as the zero point. Weights may be int8 under float
    activations (hybrid).
    """

    strides: tuple[int, int] = (1, 1)  # rows, columns
    dilations: tuple[int, int] = (1, 1)
    padding: Padding2D = Padding2D()
    activation: Activation = Activation.NONE


@dataclass(frozen=True, slots=True)
class DepthwiseConv2D(linear.WeightedOperator):
    """Inputs: image (N, H, W, I), weights (1, KH, KW, I*M), optional bias (I*M,).

    Output channel c reads input channel c // depth_multiplier.
    """

    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    padding: Padding2D = Padding2D()
    depth_multiplier: int = 1
    activation: Activation = Activation.NONE


def _conv_2d_shape(node: Node) -> tuple[Shape, ...]:
    assert isinstance(node.op, Conv2D)
    image, weights = input_shape(node, 0, 4), input_shape(node, 1, 4)
    groups = image[3] // max(weights[3], 1)
    require(
        groups > 0 and weights[3] * groups == image[3] and weights[0] % groups == 0,
        f"weights {weights} for an image of {image[3]} channels",
        f"(O, KH, KW, {image[3]}), or O and {image[3]} channels in as many groups",
    )
    check_bias(node, weights[0])
    return (windowed_shape(image, sliding_window(node), weights[0]),)


def _depthwise_conv_2d_shape(node: Node) -> tuple[Shape, ...]:
    op = node.attributes(DepthwiseConv2D)
    image, weights = input_shape(node, 0, 4), input_shape(node, 1, 4)
    channels = image[3] * op.depth_multiplier
    require(
        weights[0] == 1 and weights[3] == channels,
        f"weights {weights} for {image[3]} channels times {op.depth_multiplier}",
        f"(1, KH, KW, {channels})",
    )
    check_bias(node, channels)
    return (windowed_shape(image, sliding_window(node), channels),)


def _depthwise_sums(node: Node, inputs: Sequence[sums.Interval]) -> SumRange | None:
    data = node.inputs[1].data
    if data is None:
        return None
    by_channel = data.astype(np.int64).reshape(-1, data.shape[-1]).T  # (O, KH*KW)
    low, high = inputs[0]
    repeat = len(by_channel) // len(low)
    low, high = (np.repeat(ends, repeat)[:, np.newaxis] for ends in (low, high))
    return linear.sums_of_products(node, by_channel, low, high)


def groups_of(node: Node) -> int:
    """Return how many groups of input channels have output channels of their own."""
    return node.inputs[0].shape[3] // node.inputs[1].shape[3]


def sliding_window(node: Node) -> SlidingWindow:
    """Return the window of a node."""
    op = node.attributes(Conv2D, DepthwiseConv2D)
    taps = node.inputs[1].shape[1:3]
    return SlidingWindow((taps[0], taps[1]), op.strides, op.dilations, op.padding)


def _conv_2d_terms(node: Node) -> int:
    return math.prod(node.inputs[1].shape[1:])


def _depthwise_terms(node: Node) -> int:
    return math.prod(node.inputs[1].shape[1:3])


def _one_image(node: Node, images: int) -> Operator | None:
    """Keep images apart, and single pixels where a window is no more than one."""
    window = sliding_window(node)
    is_pixel = (window.taps, window.strides) == ((1, 1), (1, 1))
    return by_rows(node, images) if is_pixel else by_first_axis(node, images)


DEFINITIONS = (
    weighted(Conv2D, _conv_2d_shape, _conv_2d_terms, window=sliding_window, one_image=_one_image),
    weighted(
        DepthwiseConv2D,
        _depthwise_conv_2d_shape,
        _depthwise_terms,
        channel_axis=3,
        sums=_depthwise_sums,
        window=sliding_window,
        types=types.WEIGHTED_LONG,
        one_image=_one_image,
    ),
)
