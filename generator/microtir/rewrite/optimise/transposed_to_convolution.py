"""Makes convolutions of transposed ones whose windows lie side by side."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Tensor, TensorType
from microtir.graph.rewriting import Rewrite, with_nodes
from microtir.operators.common.attributes import Padding2D
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.transposed_convolution.definition import TransposeConv


class TransposedToConvolution(Rewrite):
    """Writes a transposed convolution of stride 1 as a convolution with its weights turned over.

    Each output element sees as many pixels as there are taps, the last tap the first of them.
    There are fast kernels for that, and it runs row by row.
    """

    def __call__(self, graph: Graph) -> Graph:
        flipped: dict[Tensor, Tensor] = {}  # layers may share constants
        return with_nodes(graph, [_as_convolution(node, flipped) for node in graph.nodes])


def _as_convolution(node: Node, flipped: dict[Tensor, Tensor]) -> Node:
    op = node.op
    if not isinstance(op, TransposeConv) or op.strides != (1, 1):
        return node
    if any(tensor.data is None for tensor in node.inputs[1:]):
        return node
    padding = _padding(node, op)
    if min(padding.top, padding.bottom, padding.left, padding.right) < 0:
        return node
    weights = flipped.setdefault(node.inputs[1], _turned_over(node.inputs[1]))
    biases = [flipped.setdefault(bias, _widened(bias)) for bias in node.inputs[2:]]
    conv = Conv2D(padding=padding, activation=op.activation, rescaling=op.rescaling)
    return replace(node, op=conv, inputs=(node.inputs[0], weights, *biases))


def _padding(node: Node, op: TransposeConv) -> Padding2D:
    """Return the padding of the convolution; below 0 where the output leaves out whole pixels."""
    sizes, taps = node.inputs[0].shape[1:3], node.inputs[1].shape[1:3]
    first = [taps[axis] - 1 - op.before[axis] for axis in (0, 1)]
    last = [
        node.output.shape[axis + 1] + taps[axis] - 1 - sizes[axis] - first[axis] for axis in (0, 1)
    ]
    return Padding2D(first[0], last[0], first[1], last[1])


def _turned_over(weights: Tensor) -> Tensor:
    return replace(weights, data=np.ascontiguousarray(weights.values[:, ::-1, ::-1]))


def _widened(bias: Tensor) -> Tensor:
    """Return a bias in a type that convolutions have."""
    if bias.dtype is not DType.INT16:
        return bias
    return Tensor(bias.name, TensorType(bias.shape, DType.INT64), bias.values.astype(np.int64))
