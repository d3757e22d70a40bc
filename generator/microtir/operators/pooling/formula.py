"""Compute pooling operators over windows that are clipped to the image."""

from __future__ import annotations

import math

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.common import attributes, float_sums, linear, rows, weighted
from microtir.operators.common.arithmetic import activate, summand
from microtir.operators.common.float_rescaling import StoredSums
from microtir.operators.common.formula import FormulaContext
from microtir.operators.common.windows import Windows, WindowTaps
from microtir.operators.pooling import definition as pooling


def windows_of(node: Node) -> Windows:
    """Return the sliding windows of a pooling operator."""
    return Windows.of_node(node, pooling.sliding_window(node))


def row_window(node: Node) -> rows.RowWindow:
    """Return the input rows behind one output row."""
    return windows_of(node).row_window()


def max_pool(layer: FormulaContext) -> None:
    """Emit MAX_POOL_2D; the maximum of stored values is the maximum of real ones."""
    node, op = layer.node, layer.node.attributes(pooling.Pool2D)
    windows, x = windows_of(node), layer.image(0)

    def element(row: te.Expr, column: te.Expr, channel: te.Expr) -> te.Expr:
        taps = WindowTaps.of(windows, x, rows.Extents.of(node.output.type), row, column)
        largest = te.max(x.at(taps.row, taps.column, channel), (taps.ky, taps.kx))
        if node.output.dtype is DType.FLOAT32:
            return activate(largest, op.activation)
        params = pooling.pool_params(op, node.output.type)
        return te.clamp(largest, params.activation_min, params.activation_max)

    layer.rows(element)


def average_pool(layer: FormulaContext) -> None:
    """Emit AVERAGE_POOL_2D: divides by the taps inside, integers halves away from zero.

    Rescaled by a real number the sum is multiplied by a factor of the taps inside.
    """
    node = layer.node
    windows, x = windows_of(node), layer.image(0)

    def element(row: te.Expr, column: te.Expr, channel: te.Expr) -> te.Expr:
        taps = WindowTaps.of(windows, x, rows.Extents.of(node.output.type), row, column)
        value = x.at(taps.row, taps.column, channel)
        total = te.sum(summand(layer, value), (taps.ky, taps.kx))
        return averaged(node, total, taps.inside)

    layer.rows(element)


def averaged(node: Node, total: te.Expr, count: te.Expr) -> te.Expr:
    """Return the output element of AVERAGE_POOL_2D for a sum of `count` elements."""
    op = node.attributes(pooling.AveragePool2D)
    if node.output.dtype is DType.FLOAT32:
        return activate(total / te.bind("count", te.cast(DType.FLOAT32, count)), op.activation)
    if op.rescaling.in_float:
        return _rescaled(node, total, count)
    params = pooling.pool_params(op, node.output.type)
    count, total = te.bind("count", te.cast(total.dtype, count)), te.bind("total", total)
    half = count // 2
    rounded = te.truncdiv(te.select(total > 0, total + half, total - half), count)
    low, high = params.activation_min, params.activation_max
    return te.cast(node.output.dtype, te.clamp(rounded, low, high))


def _rescaled(node: Node, total: te.Expr, count: te.Expr) -> te.Expr:
    """Return the mean of `count` stored elements as a stored element of another scale."""
    op, (x, y) = node.attributes(pooling.AveragePool2D), (node.inputs[0].type, node.output.type)
    params, zero_point, taps = pooling.pool_params(op, y), x.quant.zero_point, math.prod(op.window)
    low, high = params.activation_min, params.activation_max
    if not windows_of(node).clip(rows.Extents.of(y)):
        least, most = (taps * (end - zero_point) for end in (x.dtype.min, x.dtype.max))
        factor = linear.sum_factor(x, y, taps, op.rescaling)
        sums = StoredSums(factor, least, most, y.quant.zero_point, low, high, op.rescaling)
        return float_sums.stored_sum(te.bind("total", total - taps * zero_point), sums, y.dtype)
    count = te.bind("count", count)
    centred = total - count * zero_point
    limits = weighted.StoredRange(y.quant.zero_point, low, high)
    if op.rescaling is attributes.Rescaling.EXACT:
        of_count = [linear.sum_factor(x, y, max(n, 1), op.rescaling) for n in range(taps + 1)]
        by_count = te.constant(np.array(of_count), "factors")
        scaled = te.cast(DType.FLOAT64, centred) * by_count[count]
        return weighted.stored_in_double(scaled, limits, y.dtype, ties_to_even=True)
    quotient = x.quant.scale / (te.cast(DType.FLOAT32, count) * y.quant.scale)
    return weighted.stored_in_float(centred, te.no_fp_contract(quotient), limits, y.dtype)


def l2_pool(layer: FormulaContext) -> None:
    """Emit L2_POOL_2D, which divides by the taps inside."""
    node, op = layer.node, layer.node.attributes(pooling.L2Pool2D)
    windows, x = windows_of(node), layer.image(0)

    def element(row: te.Expr, column: te.Expr, channel: te.Expr) -> te.Expr:
        taps = WindowTaps.of(windows, x, rows.Extents.of(node.output.type), row, column)
        value = te.bind("value", x.at(taps.row, taps.column, channel))
        total = te.sum(value * value, (taps.ky, taps.kx))
        return activate(te.sqrt(total / te.cast(DType.FLOAT32, taps.inside)), op.activation)

    layer.rows(element)
