"""AVERAGE_POOL_2D and MAX_POOL_2D over clipped windows, and MEAN."""

from __future__ import annotations

import numpy as np

from microtir import te
from microtir.graph.ir import Node
from microtir.graph.ops import Mean, Pool2D
from microtir.graph.quantization import mean_params, pool_params
from microtir.lowering.arithmetic import activate, requantise, stored, wide
from microtir.lowering.layer import Extents, Layer
from microtir.lowering.window import Taps, Windows
from microtir.plan.ir import RowWindow
from microtir.tir.dtype import DType


def windows_of(node: Node) -> Windows:
    op = node.op
    assert isinstance(op, Pool2D)
    image = Extents.of(node.inputs[0].type)
    return Windows.of(image, op.window, op.strides, (1, 1), op.padding)


def row_window(node: Node) -> RowWindow:
    return windows_of(node).row_window()


def max_pool(layer: Layer) -> None:
    """Emit MAX_POOL_2D; the maximum of stored values is the maximum of real ones."""
    node, op = layer.node, layer.node.op
    assert isinstance(op, Pool2D)
    windows, x = windows_of(node), layer.image(0)

    def element(row: te.Expr, column: te.Expr, channel: te.Expr) -> te.Expr:
        taps = Taps.of(windows, x, Extents.of(node.output.type), row, column)
        largest = te.max(x.at(taps.row, taps.column, channel), (taps.ky, taps.kx))
        if node.output.dtype is DType.FLOAT32:
            return activate(largest, op.activation)
        params = pool_params(op, node.output.type)
        return te.clamp(largest, params.activation_min, params.activation_max)

    layer.rows(element)


def average_pool(layer: Layer) -> None:
    """Emit AVERAGE_POOL_2D: divides by the taps inside, int8 halves away from zero."""
    node, op = layer.node, layer.node.op
    assert isinstance(op, Pool2D)
    windows, x = windows_of(node), layer.image(0)

    def element(row: te.Expr, column: te.Expr, channel: te.Expr) -> te.Expr:
        taps = Taps.of(windows, x, Extents.of(node.output.type), row, column)
        value = x.at(taps.row, taps.column, channel)
        axes = (taps.ky, taps.kx)
        if node.output.dtype is DType.FLOAT32:
            count = te.bind("count", te.cast(DType.FLOAT32, taps.inside))
            return activate(te.sum(value, axes) / count, op.activation)
        params = pool_params(op, node.output.type)
        count = te.bind("count", taps.inside)
        total = te.sum(wide(value), axes)
        half = count // 2
        rounded = te.truncdiv(te.select(total > 0, total + half, total - half), count)
        low, high = params.activation_min, params.activation_max
        return te.cast(node.output.dtype, te.clamp(rounded, low, high))

    layer.rows(element)


def mean(layer: Layer) -> None:
    """Emit MEAN over any axes."""
    node, op = layer.node, layer.node.op
    assert isinstance(op, Mean)
    x, shape = layer.whole(0), node.inputs[0].shape
    kept = [axis for axis in range(len(shape)) if axis not in op.axes]
    names = {axis: f"k{axis}" for axis in op.axes}
    count = int(np.prod([shape[axis] for axis in op.axes], dtype=np.int64))

    def element(*position: te.Expr) -> te.Expr:
        reduced = {axis: te.reduce_axis(0, shape[axis], names[axis]) for axis in op.axes}
        outer = dict(zip(kept, position, strict=True))
        value = x[tuple(reduced[a] if a in reduced else outer[a] for a in range(len(shape)))]
        axes = tuple(reduced.values())
        if node.output.dtype is DType.FLOAT32:
            return (te.sum(value, axes) if axes else value) / float(count)
        params = mean_params(op, node.inputs[0].type, node.output.type)
        offset = -count * params.input_zero_point
        total = te.sum(wide(value), axes, init=offset) if axes else wide(value) + offset
        scaled = requantise(total, params.multiplier)
        return stored(
            scaled, params.output_zero_point, params.minimum, params.maximum, node.output.dtype
        )

    layer.tensor(element, tuple(shape[axis] for axis in kept))
