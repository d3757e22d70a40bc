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
        return _float_bilinear(op, node, image)
    if node.output.dtype is DType.UINT8:  # as LiteRT's kernel of the older quantisation
        real = _float_bilinear(op, node, image.astype(np.float32))
        return as_output(real + np.float32(0.5), node.output.type)
    _, rows, columns, _ = node.output.shape
    vertical = resize.bilinear_axis(op, image.shape[1], rows)
    horizontal = resize.bilinear_axis(op, image.shape[2], columns)
    dy = np.array(vertical.weight, np.int64)[:, None, None]
    dx = np.array(horizontal.weight, np.int64)[:, None]
    one = 1 << resize.BILINEAR_BITS
    x = stored(image)
    upper, lower = x[:, vertical.lower], x[:, vertical.upper]
    total = (
        upper[:, :, horizontal.lower] * (one - dy) * (one - dx)
        + lower[:, :, horizontal.lower] * dy * (one - dx)
        + upper[:, :, horizontal.upper] * (one - dy) * dx
        + lower[:, :, horizontal.upper] * dy * dx
    )
    half, bits = 1 << (2 * resize.BILINEAR_BITS - 1), 2 * resize.BILINEAR_BITS
    magnitude = (np.abs(total) + half) >> bits
    return as_output(np.where(total < 0, -magnitude, magnitude), node.output.type)


def _float_bilinear(op: resize.ResizeBilinear, node: Node, image: Array) -> Array:
    """Interpolate floats, every product and sum rounded to the image's type."""
    _, rows, columns, _ = node.output.shape
    vertical = resize.bilinear_axis_float(op, image.shape[1], rows)
    horizontal = resize.bilinear_axis_float(op, image.shape[2], columns)
    dy = np.array(vertical.fraction, image.dtype)[:, None, None]
    dx = np.array(horizontal.fraction, image.dtype)[:, None]
    one = image.dtype.type(1.0)
    upper, lower = image[:, vertical.lower], image[:, vertical.upper]
    total: Array = (
        upper[:, :, horizontal.lower] * (one - dy) * (one - dx)
        + lower[:, :, horizontal.lower] * dy * (one - dx)
        + upper[:, :, horizontal.upper] * (one - dy) * dx
        + lower[:, :, horizontal.upper] * dy * dx
    )
    return total
