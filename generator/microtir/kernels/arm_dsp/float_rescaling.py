"""Layers whose sums are rescaled in float32, as far as kernels for Arm's DSP extension take them.

Where integers give the same for every sum, any core does; else the FPU multiplies and rounds.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from microtir.config import Feature
from microtir.config.target import Target
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common import kernel, made_once, packing
from microtir.operators.common.linear import LinearParams, rescales_in_float
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D, conv_params
from microtir.operators.dense.definition import FullyConnected, fully_connected_params


class FloatRescaling(kernel.Kernel):
    """A kernel that takes layers whose sums are rescaled in float32."""

    rescales_in_float = True

    def suits_node(self, node: Node, target: Target) -> bool:
        """Return whether a target has an FPU, or integers do what it would do."""
        return target.has(Feature.FPU) or not rescales_in_float(node) or _has_integers(node)


@made_once.of_node
def _has_integers(node: Node) -> bool:
    if node.output.dtype is DType.INT16:  # of so many steps no integers are looked for
        return False
    matrix, params = _linear(node)
    factors = packing.requantised(matrix, node, params)
    return factors is not None and not factors.rescaling.in_float


def _linear(node: Node) -> tuple[npt.NDArray[np.int8], LinearParams]:
    """Return the weights of a layer as (channels, K), and its parameters."""
    weights, types = node.inputs[1].values, [x.type for x in (*node.inputs[:2], node.output)]
    if isinstance(node.op, FullyConnected):
        return weights, fully_connected_params(node.op, *types)
    op = node.attributes(Conv2D, DepthwiseConv2D)
    if isinstance(op, DepthwiseConv2D):
        weights = weights.transpose(3, 1, 2, 0)
    return weights.reshape(len(weights), -1), conv_params(op, *types)
