"""Define in numpy, to the bit, what pooling computes."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.common import fixed_point, linear
from microtir.operators.common.arrays import activate, as_output, stored, taps
from microtir.operators.common.attributes import Rescaling
from microtir.operators.pooling import definition as pooling


def average_pool_2d(op: pooling.AveragePool2D, node: Node, image: Array) -> Array:
    """Compute AVERAGE_POOL_2D; integers divide by the count inside, halves away from zero.

    Rescaled by a real number the sum is multiplied by a factor of the count.
    """
    output = node.output.type
    inside = _pool_taps(op, node, np.ones_like(image, np.int64), 0)
    count = inside.sum(axis=3)
    if output.dtype.is_float:
        total = _pool_taps(op, node, image.astype(np.float64), 0.0).sum(axis=3)
        return as_output(activate(total / count, op.activation), output)
    total = _pool_taps(op, node, stored(image), 0).sum(axis=3)
    params = pooling.pool_params(op, output)
    if op.rescaling.in_float:
        average = _rescaled(node, total, count, op.rescaling)
    else:
        magnitude = (np.abs(total) + count // 2) // count
        average = np.where(total < 0, -magnitude, magnitude)
    return as_output(np.clip(average, params.activation_min, params.activation_max), output)


def _rescaled(
    node: Node, total: fixed_point.Ints, count: fixed_point.Ints, rescaling: Rescaling
) -> fixed_point.Ints:
    """Return means of stored elements as stored elements of another scale."""
    x, y = node.inputs[0].type, node.output.type
    counts = range(1, int(count.max()) + 1)
    factors = np.array([linear.sum_factor(x, y, n, rescaling) for n in counts])
    centred = total - count * x.quant.zero_point
    return linear.times_factors(centred, factors[count - 1], rescaling) + y.quant.zero_point


def max_pool_2d(op: pooling.MaxPool2D, node: Node, image: Array) -> Array:
    """Compute MAX_POOL_2D; compares stored values."""
    output = node.output.type
    if output.dtype.is_float:
        largest = _pool_taps(op, node, image, -np.inf).max(axis=3)
        return as_output(activate(largest, op.activation), output)
    largest = _pool_taps(op, node, image, output.dtype.min).max(axis=3)
    params = pooling.pool_params(op, output)
    return as_output(np.clip(largest, params.activation_min, params.activation_max), output)


def l2_pool_2d(op: pooling.L2Pool2D, node: Node, image: Array) -> Array:
    """Compute L2_POOL_2D."""
    count = _pool_taps(op, node, np.ones_like(image, np.int64), 0).sum(axis=3)
    squares = _pool_taps(op, node, image.astype(np.float64) ** 2, 0.0).sum(axis=3)
    return as_output(activate(np.sqrt(squares / count), op.activation), node.output.type)


def _pool_taps(op: pooling.Pool2D, node: Node, image: Array, fill: float) -> Array:
    return taps(image, node, op.window, op.strides, (1, 1), op.padding, fill)
