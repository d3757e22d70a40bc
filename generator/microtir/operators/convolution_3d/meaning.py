"""Define in numpy what convolutions over volumes compute."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.common.arrays import activate, as_output
from microtir.operators.convolution_3d.definition import Conv3D


def conv_3d(
    op: Conv3D, node: Node, volume: Array, weights: Array, bias: Array | None = None
) -> Array:
    """Compute CONV_3D: each tap's share of all outputs, in float64."""
    margins = [(0, 0), *zip(op.before, op.after, strict=True), (0, 0)]
    padded = np.pad(volume.astype(np.float64), margins)
    extents = node.output.shape[1:4]
    total = np.zeros(node.output.shape)
    for tap in np.ndindex(*weights.shape[:3]):
        axes = zip(tap, op.dilations, op.strides, extents, strict=True)
        depth, rows, columns = (slice(k * d, k * d + (n - 1) * s + 1, s) for k, d, s, n in axes)
        total += padded[:, depth, rows, columns] @ weights[tap].astype(np.float64)
    if bias is not None:
        total = total + bias
    return as_output(activate(total, op.activation), node.output.type)
