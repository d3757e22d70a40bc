"""Define in numpy what operators compute that move blocks of an image."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.rearrangement import definition as rearrangement


def depth_to_space(op: rearrangement.DepthToSpace, node: Node, x: Array) -> Array:
    """Compute DEPTH_TO_SPACE."""
    images, height, width, _ = x.shape
    blocks: Array = x.reshape(images, height, width, op.block, op.block, -1)
    return np.asarray(blocks.transpose(0, 1, 3, 2, 4, 5)).reshape(node.output.shape)


def space_to_depth(op: rearrangement.SpaceToDepth, node: Node, x: Array) -> Array:
    """Compute SPACE_TO_DEPTH."""
    images, height, width, _ = node.output.shape
    blocks = x.reshape(images, height, op.block, width, op.block, -1)
    return np.asarray(blocks.transpose(0, 1, 3, 2, 4, 5)).reshape(node.output.shape)


def space_to_batch(op: rearrangement.SpaceToBatch, node: Node, x: Array) -> Array:
    """Compute SPACE_TO_BATCH_ND: image after image of the first element of each block, ..."""
    rank, rest = len(op.block), x.shape[len(op.block) + 1 :]
    margins = ((0, 0), *zip(op.before, op.after, strict=True), *((0, 0) for _ in rest))
    padded = np.pad(x, margins, constant_values=np.array(op.value).astype(x.dtype))
    counts = zip(padded.shape[1 : rank + 1], op.block, strict=True)
    cut = [part for size, block in counts for part in (size // block, block)]
    blocks = padded.reshape(x.shape[0], *cut, *rest)
    inner, outer = range(2, 2 * rank + 1, 2), range(1, 2 * rank, 2)
    last = range(2 * rank + 1, blocks.ndim)
    moved = blocks.transpose(*inner, 0, *outer, *last)
    return np.asarray(moved).reshape(node.output.shape)


def batch_to_space(op: rearrangement.BatchToSpace, node: Node, x: Array) -> Array:
    """Compute BATCH_TO_SPACE_ND."""
    rank = len(op.block)
    images, sizes, rest = node.output.shape[0], x.shape[1 : rank + 1], x.shape[rank + 1 :]
    blocks = x.reshape(*op.block, images, *sizes, *rest)
    pairs = [axis for n in range(rank) for axis in (rank + 1 + n, n)]
    last = range(2 * rank + 1, blocks.ndim)
    full = [size * block for size, block in zip(sizes, op.block, strict=True)]
    joined = blocks.transpose(rank, *pairs, *last).reshape(images, *full, *rest)
    crops = zip(op.before, op.after, full, strict=True)
    inside = (slice(None), *(slice(before, size - after) for before, after, size in crops))
    return np.array(joined[inside])
