"""Define in numpy, to the bit, what the resizing of images computes."""

from __future__ import annotations

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Node
from microtir.operators.common.arrays import as_output, stored
from microtir.operators.resize import definition as resize


def resize_nearest_neighbor(op: resize.ResizeNearestNeighbor, node: Node, image: Array) -> Array:
    """Copy the nearest element; any type."""
    _, rows, columns, _ = node.output.shape
    y = resize.nearest_indices(op, image.shape[1], rows)
    x = resize.nearest_indices(op, image.shape[2], columns)
    return image[:, y][:, :, x]


def resize_bilinear(op: resize.ResizeBilinear, node: Node, image: Array) -> Array:
    """Interpolate: float32, or int8 with 10-bit coordinates and halves away from zero."""
    if node.output.dtype.is_float:
        return _weighed(op, node, image)
    if node.output.dtype is DType.UINT8:  # as LiteRT's kernel of the older quantisation
        real = _weighed(op, node, image.astype(np.float32))
        return as_output(real + np.float32(0.5), node.output.type)
    total = _weighed(op, node, stored(image))
    half, bits = 1 << (2 * resize.BILINEAR_BITS - 1), 2 * resize.BILINEAR_BITS
    magnitude = (np.abs(total) + half) >> bits
    return as_output(np.where(total < 0, -magnitude, magnitude), node.output.type)


def _weighed(op: resize.ResizeBilinear, node: Node, image: Array) -> Array:
    """Return sums of four neighbours; of floats every product and sum is rounded to their type."""
    axis_of, one = resize.bilinear_axis, 1 << resize.BILINEAR_BITS
    if image.dtype.kind == "f":
        axis_of, one = resize.bilinear_axis_float, 1
    rows, columns = (axis_of(op, image.shape[n], node.output.shape[n]) for n in (1, 2))
    dy = np.array(rows.weight, image.dtype)[:, None, None]
    dx = np.array(columns.weight, image.dtype)[:, None]
    upper, lower = image[:, rows.lower], image[:, rows.upper]
    total: Array = (
        upper[:, :, columns.lower] * (one - dy) * (one - dx)
        + lower[:, :, columns.lower] * dy * (one - dx)
        + upper[:, :, columns.upper] * (one - dy) * dx
        + lower[:, :, columns.upper] * dy * dx
    )
    return total
