"""Define in numpy what layers compute whose weights have a scale for each block."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.block_dense.definition import BlockDense
from microtir.operators.common.arrays import Doubles, as_output


def _unpacked(packed: Array, bits: int) -> Doubles:
    """Return the integers that the bytes of the last axis hold."""
    shifts = np.arange(0, 8, bits)
    each = packed[..., None] >> shifts & (1 << bits) - 1
    return each.reshape(*packed.shape[:-1], -1).astype(np.float64)


def block_dense(
    op: BlockDense, node: Node, x: Array, weights: Array, scales: Array, *more: Array
) -> Array:
    """Multiply with the weights that the integers stand for, in double."""
    channels, blocks, _ = weights.shape
    zero_points: Array = np.full((channels, blocks), op.middle, np.float64)
    if op.has_zero_points:
        zero_point_rows = more[0]
        is_float = zero_point_rows.dtype.kind == "f"
        zero_points = (
            zero_point_rows.astype(np.float64) if is_float else _unpacked(zero_point_rows, op.bits)
        )
    stored = _unpacked(weights, op.bits) - zero_points[:, :blocks, None]
    real = (stored * scales.astype(np.float64)[:, :, None]).reshape(channels, -1)
    result = x.astype(np.float64) @ real[:, : x.shape[-1]].T
    if op.has_bias:
        result = result + more[-1].astype(np.float64)
    return as_output(result, node.output.type)
