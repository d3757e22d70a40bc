"""Fold factors and terms of channels into the weights and biases before them.

Exporters leave what a layer adds as an operator of its own, and normalisation in inference mode is
a factor and a term for each channel.  In floats they are part of the layer, which then rounds once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Graph, Node, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.graph.rewriting import Keeps, Rewrite, constant
from microtir.operators.arithmetic.definition import Add, Mul
from microtir.operators.common.attributes import Activation
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.convolution_3d.definition import Conv3D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.transposed_convolution.definition import TransposeConv

_Layer = Conv2D | TransposeConv | FullyConnected | DepthwiseConv2D | Conv3D

_CHANNEL_AXIS: Mapping[type[Operator], int] = MappingProxyType(
    {Conv2D: 0, TransposeConv: 0, FullyConnected: 0, DepthwiseConv2D: 3, Conv3D: 4}
)
"""Axis of the output channels in the weights of each kind of layer."""


class FoldAffine(Rewrite):
    """Folds what is multiplied and added behind a layer into its weights and bias."""

    keeps = Keeps.SUMS

    def __call__(self, graph: Graph) -> Graph:
        consumers = graph.consumers()
        nodes: list[Node] = []
        producers: dict[Tensor, int] = {}  # which node gives a tensor
        for node in graph.nodes:
            layer, values = _layer_and_values(node, nodes, producers)
            if layer is None or values is None or layer.outputs[0] in graph.outputs:
                folded = None
            else:
                alone = len(layer.outputs) == 1 and consumers[layer.output] == (node,)
                folded = _folded(layer, node, values) if alone else None
            if folded is None or layer is None:
                producers.update(dict.fromkeys(node.outputs, len(nodes)))
                nodes.append(node)
                continue
            place = producers[layer.output]
            nodes[place] = folded
            producers[folded.output] = place
            # What was known of the layer's consumers is true of what takes its place.
            consumers[folded.output] = consumers.get(node.output, ())
        return replace(graph, nodes=tuple(nodes))


def _layer_and_values(
    node: Node, nodes: Sequence[Node], producers: dict[Tensor, int]
) -> tuple[Node | None, Tensor | None]:
    """Return the layer behind an operand of an Add or Mul, and the constant that is the other."""
    if not isinstance(node.op, Add | Mul) or len(node.inputs) != 2:
        return None, None
    for x, values in (node.inputs, node.inputs[::-1]):
        layer = nodes[producers[x]] if x in producers else None
        if values.data is not None and layer is not None and type(layer.op) in _CHANNEL_AXIS:
            return layer, values
    return None, None


def _folded(layer: Node, node: Node, values: Tensor) -> Node | None:
    """Return the layer with a factor or term in it; None if it cannot take it."""
    op, affine, weights = layer.op, node.op, layer.inputs[1]
    if not isinstance(op, _Layer) or not isinstance(affine, Add | Mul) or weights.data is None:
        return None
    axis = _CHANNEL_AXIS[type(op)]
    vector = _by_channel(values, weights.shape[axis])
    has_bias = len(layer.inputs) == 3
    bias = layer.inputs[2].data if has_bias else np.zeros(weights.shape[axis], np.float32)
    is_alike = layer.output.type == node.output.type and op.activation is Activation.NONE
    if vector is None or bias is None or not is_alike or layer.output.dtype is not DType.FLOAT32:
        return None
    term = bias + vector
    if isinstance(affine, Mul):
        shape = [1] * len(weights.shape)
        shape[axis] = len(vector)
        weights = constant(weights.name, weights.type, weights.data * vector.reshape(shape))
        term = bias * vector
    bias_type = TensorType(tuple(term.shape), DType.FLOAT32)
    inputs = (layer.inputs[0], weights, constant(f"{node.output.name}/bias", bias_type, term))
    op = replace(op, activation=affine.activation)
    return replace(layer, op=op, inputs=inputs, outputs=node.outputs)


def _by_channel(values: Tensor, channels: int) -> Array | None:
    """Return a constant as a vector of the channels, which are the last axis; else None."""
    if values.type.elements not in (1, channels):
        return None
    if values.type.elements > 1 and values.shape[-1] != channels:
        return None
    return np.broadcast_to(values.values.reshape(-1), (channels,))
