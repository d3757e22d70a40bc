"""Define in numpy what pooling computes that keeps where the maxima are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.argmax_pooling import definition as argmax_pooling
from microtir.operators.common.arrays import activate, as_output, taps


def max_pool_with_places(
    op: argmax_pooling.MaxPoolWithPlaces, node: Node, image: Array
) -> tuple[Array, ...]:
    """Compute MaxPoolingWithArgmax2D."""
    of_values = replace(node, outputs=node.outputs[:1])
    windows = taps(image, of_values, op.window, op.strides, (1, 1), op.padding, -np.inf)
    largest = as_output(activate(windows.max(axis=3), op.activation), node.outputs[0].type)
    places = windows.argmax(axis=3).astype(np.float32) + np.float32(argmax_pooling.PLACE_ROUNDING)
    return (largest, places)[: len(node.outputs)]


def max_unpool(op: argmax_pooling.MaxUnpool, node: Node, values: Array, places: Array) -> Array:
    """Compute MaxUnpooling2D."""
    result = np.zeros(node.output.shape, np.float32)
    above, left = argmax_pooling.unpool_before(node)
    _, rows, columns, _ = result.shape
    for image, row, column, channel in np.ndindex(*values.shape):
        place = places[image, row, column, channel]
        if not 0 <= place < op.window[0] * op.window[1]:
            continue
        down, right = divmod(int(place), op.window[1])
        y, x = row * op.strides[0] - above + down, column * op.strides[1] - left + right
        if 0 <= y < rows and 0 <= x < columns:
            result[image, y, x, channel] = values[image, row, column, channel]
    return result
