"""Define in numpy, to the bit, what transposed convolutions compute."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.common.arrays import Doubles
from microtir.operators.common.linear_meaning import linear
from microtir.operators.transposed_convolution.definition import (
    TransposeConv,
)


def transpose_conv(
    op: TransposeConv, node: Node, image: Array, weights: Array, bias: Array | None = None
) -> Array:
    """Compute TRANSPOSE_CONV: int8, int16 or float32."""

    def sums(centred: Doubles, factors: Doubles) -> Doubles:
        """Add each pixel's window to an image of all windows, and cut the output out of it."""
        _, rows, columns, _ = centred.shape
        outputs, high, wide, _ = factors.shape
        (down, right), (top, left), (_, height, width, _) = op.strides, op.before, node.output.shape
        whole = np.zeros(
            (
                len(centred),
                max((rows - 1) * down + high, top + height),
                max((columns - 1) * right + wide, left + width),
                outputs,
            )
        )
        for ky in range(high):
            for kx in range(wide):
                below, beside = ky + (rows - 1) * down + 1, kx + (columns - 1) * right + 1
                whole[:, ky:below:down, kx:beside:right] += centred @ factors[:, ky, kx].T
        return whole[:, top : top + height, left : left + width]

    return linear(node, sums, image, weights, bias)
