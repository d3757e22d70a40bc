"""Makes depthwise convolutions of those in as many groups as there are channels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Tensor, TensorType
from microtir.graph.rewriting import Rewrite, with_nodes
from microtir.operators.common.linear import has_long_sums
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D, groups_of


class GroupsToDepthwise(Rewrite):
    """Writes a convolution whose groups have one input channel as a depthwise one.

    That is what it is, with the axes of the weights in another order; there are fast kernels for
    it.  A bias of int32 beside data of int16 keeps it as it is: no depthwise convolution has that.
    """

    def __call__(self, graph: Graph) -> Graph:
        turned: dict[Tensor, Tensor] = {}  # layers may share weights
        return with_nodes(graph, [_as_depthwise(node, turned) for node in graph.nodes])


def _as_depthwise(node: Node, turned: dict[Tensor, Tensor]) -> Node:
    op = node.op
    if not isinstance(op, Conv2D) or node.inputs[1].data is None:
        return node
    groups, depth = groups_of(node), node.inputs[1].shape[3]
    if (
        groups == 1
        or depth > 1
        or (node.inputs[0].dtype is DType.INT16 and not has_long_sums(node))
    ):
        return node
    weights = turned.setdefault(node.inputs[1], _turned(node.inputs[1]))
    depthwise = DepthwiseConv2D(
        op.strides,
        op.dilations,
        op.padding,
        depth_multiplier=node.output.shape[3] // groups,
        activation=op.activation,
        rescaling=op.rescaling,
    )
    return replace(node, op=depthwise, inputs=(node.inputs[0], weights, *node.inputs[2:]))


def _turned(weights: Tensor) -> Tensor:
    """Return weights (O, KH, KW, 1) as (1, KH, KW, O)."""
    data = np.ascontiguousarray(weights.values.transpose(3, 1, 2, 0))
    quantization = weights.type.quantization
    if quantization is not None and quantization.axis is not None:
        quantization = replace(quantization, axis=3)
    return Tensor(weights.name, TensorType(data.shape, weights.dtype, quantization), data)
