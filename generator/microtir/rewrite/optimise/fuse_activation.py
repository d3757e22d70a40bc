"""Moves a RELU into the operator that computes its input."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from microtir.graph.ir import Graph, Node, TensorType
from microtir.graph.rewriting import Rewrite, with_nodes
from microtir.operators.activations.definition import Relu, relu_params
from microtir.operators.arithmetic.definition import BinaryArithmetic
from microtir.operators.common.attributes import Activation
from microtir.operators.common.multiplier import activation_range
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.pooling.definition import Pool2D
from microtir.operators.transposed_convolution.definition import TransposeConv

Carrier: TypeAlias = (
    Conv2D | DepthwiseConv2D | TransposeConv | FullyConnected | Pool2D | BinaryArithmetic
)
"""Operators that have an activation."""


class FuseActivation(Rewrite):
    """Fuses RELU operators into producers that nobody else reads.

    Exact for float, where clamping and rounding commute. For int8 only if the RELU does not
    rescale and clamps to the very values that the fused activation clamps to.
    """

    def __call__(self, graph: Graph) -> Graph:
        consumers = graph.consumers()
        fused: dict[Node, Node] = {}  # producer -> producer with the activation
        dropped: set[Node] = set()
        producers = graph.producers()
        for node in graph.nodes:
            producer = producers.get(node.inputs[0])
            if producer is None or node.inputs[0] in graph.outputs or producer in fused:
                continue
            if consumers[node.inputs[0]] == (node,) and _is_fusible(producer, node):
                fused[producer] = _with_activation(producer, node)
                dropped.add(node)
        return with_nodes(graph, [fused.get(n, n) for n in graph.nodes if n not in dropped])


def _with_activation(producer: Node, relu: Node) -> Node:
    assert isinstance(relu.op, Relu) and isinstance(producer.op, Carrier)
    op = replace(producer.op, activation=relu.op.kind)
    return replace(producer, op=op, outputs=relu.outputs)


def _is_fusible(producer: Node, node: Node) -> bool:
    if not isinstance(node.op, Relu) or not isinstance(producer.op, Carrier):
        return False
    if producer.op.activation is not Activation.NONE:
        return False
    source, output = node.inputs[0].type, node.output.type
    return source.dtype.is_float or _only_clamps(node.op, source, output)


def _only_clamps(op: Relu, source: TensorType, output: TensorType) -> bool:
    """Return whether an int8 RELU is the clamp of a fused activation."""
    if source.quantization != output.quantization:
        return False
    params = relu_params(op, source, output)
    return (params.activation_min, params.activation_max) == activation_range(op.kind, output)
