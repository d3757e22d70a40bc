"""Define in numpy what layers compute whose weights have a scale for each block."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.block_dense.definition import LARGEST, LEAST, BlockDense
from microtir.operators.common.arrays import Doubles, as_output


def _unpacked(packed: Array, bits: int) -> Doubles:
    """Return the integers that the bytes of the last axis hold."""
    shifts = np.arange(0, 8, bits)
    each = packed[..., None] >> shifts & (1 << bits) - 1
    return each.reshape(*packed.shape[:-1], -1).astype(np.float64)


def _rounded(x: Array) -> tuple[Array, Array]:
    """Return rows as integers, and what a 1 in each stands for; steps are those of float32."""
    rows, highest = x.astype(np.float32), np.float32(LARGEST)
    largest = np.abs(rows).max(axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        inverse, factors = highest / largest, largest / highest
        is_small, is_number = largest < LEAST, np.isfinite(largest)
        stored = np.rint(np.where(is_number & ~is_small, rows * inverse, 0))
    factors = np.where(is_small, 0, np.where(is_number, factors, np.nan))
    return stored, factors.astype(np.float64)


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
    rows, factors = _rounded(x) if op.rounds_rows else (x, np.ones(1))
    result = rows.astype(np.float64) @ real[:, : x.shape[-1]].T * factors
    if op.has_bias:
        result = result + more[-1].astype(np.float64)
    return as_output(result, node.output.type)
