"""Define in numpy, to the bit, what convolutions compute."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.common.arrays import Doubles, taps
from microtir.operators.common.linear_meaning import flat_rows, linear
from microtir.operators.convolution.definition import (
    Conv2D,
    DepthwiseConv2D,
    groups_of,
)


def _conv_taps(op: Conv2D | DepthwiseConv2D, node: Node, image: Doubles) -> Array:
    _, high, wide, _ = node.inputs[1].shape
    return taps(image, node, (high, wide), op.strides, op.dilations, op.padding, 0.0)


def conv_2d(
    op: Conv2D, node: Node, image: Array, weights: Array, bias: Array | None = None
) -> Array:
    """Compute CONV_2D: int8, float32, or float32 with int8 weights."""

    def sums(centred: Doubles, factors: Doubles) -> Doubles:
        columns = _conv_taps(op, node, centred)
        return np.concatenate(
            [
                part.reshape(*part.shape[:3], -1) @ flat_rows(weights).T
                for part, weights in zip(
                    np.split(columns, groups_of(node), axis=-1),
                    np.split(factors, groups_of(node)),
                    strict=True,
                )
            ],
            axis=-1,
        )

    return linear(node, sums, image, weights, bias)


def depthwise_conv_2d(
    op: DepthwiseConv2D, node: Node, image: Array, weights: Array, bias: Array | None = None
) -> Array:
    """Compute DEPTHWISE_CONV_2D: int8, float32, or float32 with int8 weights."""

    def sums(centred: Doubles, factors: Doubles) -> Doubles:
        columns = np.repeat(_conv_taps(op, node, centred), op.depth_multiplier, axis=-1)
        result: Doubles = (columns * factors.reshape(columns.shape[3:])).sum(axis=3)
        return result

    return linear(node, sums, image, weights, bias)
