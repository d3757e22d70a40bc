"""Define in numpy, to the bit, what products of matrices compute."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.common.arrays import as_output
from microtir.operators.common.linear import has_long_sums, params_of
from microtir.operators.common.linear_meaning import requantized
from microtir.operators.matmul.definition import BatchMatmul


def batch_matmul(op: BatchMatmul, node: Node, x: Array, y: Array) -> Array:
    """Compute BATCH_MATMUL; doubles hold the sums of integers exactly, below 2^53."""
    types, output = [tensor.type for tensor in node.inputs], node.output.type
    centred = [
        array.astype(np.float64) - (0 if type_.dtype.is_float else type_.quant.zero_point)
        for array, type_ in zip((x, y), types, strict=True)
    ]
    first, second = (
        np.swapaxes(array, -1, -2) if is_turned else array
        for array, is_turned in zip(centred, (op.adj_x, op.adj_y), strict=True)
    )
    total = first @ second
    if output.dtype.is_float:
        return as_output(total, output)
    sums = requantized(total.astype(np.int64), params_of(node), has_long_sums(node))
    return as_output(sums, output)
