"""Define in numpy, to the bit, what reductions over axes compute."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.common import arrays
from microtir.operators.common.fixed_point import (
    Ints,
    multiply_by_quantized_multiplier,
    multiply_by_reduced_multiplier,
    wrap,
)
from microtir.operators.reduction import definition as reduction


def sums(op: reduction.Mean | reduction.Sum, node: Node, x: Array) -> Array:
    """Compute MEAN and SUM; quantised ones rescale the sum, modulo 2^32, of stored values.

    By a real number they rescale the sum as it is.
    """
    output = node.output.type
    if not reduction.is_rescaled(node):
        total = x.astype(np.float64) if output.dtype.is_float else x
        result = (
            total.mean(axis=op.axes) if isinstance(op, reduction.Mean) else total.sum(axis=op.axes)
        )
        return _shaped(result, node)
    if op.rescaling.in_float:
        sums = reduction.float_sum(node)
        centred = (arrays.stored(x) - node.inputs[0].type.quant.zero_point).sum(axis=op.axes)
        return _shaped(sums.stored(centred), node)
    params = reduction.sum_params(op, node.inputs[0].type, output)
    total = arrays.stored(x).sum(axis=op.axes) - params.count * params.input_zero_point
    scaled = multiply_by_quantized_multiplier(wrap(total), *params.multiplier)
    return _shaped(np.clip(scaled + params.output_zero_point, params.minimum, params.maximum), node)


def reduce_max(op: reduction.ReduceMax, node: Node, x: Array) -> Array:
    """Compute REDUCE_MAX of stored values; a NaN counts as nothing."""
    lowest = np.finfo(x.dtype).min if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    if op.infinite and x.dtype.kind == "f":
        lowest = -np.inf
    return _shaped(np.fmax.reduce(x, axis=op.axes, initial=lowest), node)


def reduce_min(op: reduction.ReduceMin, node: Node, x: Array) -> Array:
    """Compute REDUCE_MIN of stored values; a NaN counts as nothing."""
    highest = np.finfo(x.dtype).max if x.dtype.kind == "f" else np.iinfo(x.dtype).max
    if op.infinite and x.dtype.kind == "f":
        highest = np.inf
    return _shaped(np.fmin.reduce(x, axis=op.axes, initial=highest), node)


def reduce_prod(op: reduction.ReduceProd, node: Node, x: Array) -> Array:
    """Compute REDUCE_PROD; integers that are not quantised wrap, as numpy's do."""
    if reduction.is_rescaled(node):
        return _shaped(_quantised_product(op, node, arrays.stored(x)), node)
    wide = x.astype(np.float64) if x.dtype.kind == "f" else arrays.stored(x)
    with np.errstate(over="ignore"):
        return _shaped(wide.prod(axis=op.axes), node)


def _quantised_product(op: reduction.ReduceProd, node: Node, x: Ints) -> Ints:
    """Multiply by one centred value after the other, and rescale each product."""
    output, factor = node.output.type, reduction.product_factor(node)
    outer = [axis for axis in range(x.ndim) if axis not in op.axes]
    values = x.transpose(*op.axes, *outer).reshape(-1, *(x.shape[axis] for axis in outer))
    product, *others = values - node.inputs[0].type.quant.zero_point
    for value in (*others, np.ones_like(product)):
        product = multiply_by_reduced_multiplier(product * value, factor.multiplier, factor.shift)
    stored = product + output.quant.zero_point
    return np.asarray(np.clip(stored, output.dtype.min, output.dtype.max))


def logical(reduce: Callable[..., Array]) -> arrays.Meaning:
    """Reduce truth values."""

    def meaning(op: reduction.Reduction, node: Node, x: Array) -> Array:
        return _shaped(reduce(x, axis=op.axes), node)

    return meaning


def arg_extremum(op: reduction.ArgExtremum, node: Node, x: Array) -> Array:
    """Compute ARG_MAX and ARG_MIN: the first of equals, and a NaN where one is first."""
    along = np.moveaxis(x, op.axis, 0)
    index_of_best, is_max = np.zeros(along.shape[1:], np.int64), isinstance(op, reduction.ArgMax)
    best = along[0]
    for index, values in enumerate(along):
        is_better = values > best if is_max else values < best
        index_of_best, best = (
            np.where(is_better, index, index_of_best),
            np.where(is_better, values, best),
        )
    return arrays.as_output(index_of_best, node.output.type)


def _shaped(result: Array, node: Node) -> Array:
    """Return results as the output; integers of 32 bits are the lower halves of longer ones."""
    return arrays.as_output(result, node.output.type).reshape(node.output.shape)
