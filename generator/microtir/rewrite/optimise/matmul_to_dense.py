"""Makes fully connected layers of products with a constant matrix."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Tensor, TensorType
from microtir.graph.rewriting import Rewrite, with_nodes
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.matmul.definition import BatchMatmul


class MatmulToDense(Rewrite):
    """Writes a product of rows with one constant matrix as a fully connected layer.

    The matrix is float32, or int8 with the zero point 0: what weights are.
    """

    def __call__(self, graph: Graph) -> Graph:
        transposed: dict[Tensor, Tensor] = {}  # layers may share weights
        return with_nodes(graph, [_as_dense(node, transposed) for node in graph.nodes])


def _as_dense(node: Node, transposed: dict[Tensor, Tensor]) -> Node:
    op = node.op
    if not isinstance(op, BatchMatmul) or op.adj_x or not _is_weights(node.inputs[1]):
        return node
    x, y = node.inputs
    if x.dtype is not y.dtype:
        return node
    weights = transposed.setdefault(y, _weights(y, is_turned=not op.adj_y))
    return replace(node, op=FullyConnected(rescaling=op.rescaling), inputs=(x, weights))


def _is_weights(y: Tensor) -> bool:
    if y.data is None or math.prod(y.shape[:-2]) > 1:
        return False
    return y.dtype.is_float or (y.dtype is DType.INT8 and not any(y.type.quant.zero_points))


def _weights(y: Tensor, *, is_turned: bool) -> Tensor:
    """Return a constant matrix as weights (O, I)."""
    matrix = y.values.reshape(y.shape[-2:])
    data = np.ascontiguousarray(matrix.T if is_turned else matrix)
    return Tensor(y.name, TensorType(data.shape, y.dtype, y.type.quantization), data)
