"""AVERAGE_POOL_2D and MAX_POOL_2D over clipped windows, and MEAN."""

from __future__ import annotations

from microtir import te
from microtir.graph.ir import Node
from microtir.kernels.common.layer import Extents, Layer
from microtir.kernels.common.window import Taps, Windows
from microtir.kernels.portable.arithmetic import Accumulator, activate, requantise, stored
from microtir.operators.pooling.definition import Pool2D, pool_params
from microtir.operators.reduction.definition import Mean, mean_params
from microtir.plan.ir import RowWindow
from microtir.tir.dtype import DType


def windows_of(node: Node) -> Windows:
    """The sliding windows of a pooling operator."""
    op = node.op
    assert isinstance(op, Pool2D)
    image = Extents.of(node.inputs[0].type)
    return Windows.of(image, op.window, op.strides, (1, 1), op.padding)


def row_window(node: Node) -> RowWindow:
    """Input rows behind one output row."""
    return windows_of(node).row_window()


def cost(node: Node) -> int:
    """Instructions of the loops below, from counts of emulated boards."""
    windows = windows_of(node)
    return node.output.type.elements * (4 * windows.rows.taps * windows.columns.taps + 40)


def mean_cost(node: Node) -> int:
    """Instructions of `mean`."""
    return 5 * node.inputs[0].type.elements + 40 * node.output.type.elements


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
    node = layer.node
    windows, x = windows_of(node), layer.image(0)

    def element(row: te.Expr, column: te.Expr, channel: te.Expr) -> te.Expr:
        taps = Taps.of(windows, x, Extents.of(node.output.type), row, column)
        value = x.at(taps.row, taps.column, channel)
        total = te.sum(summand(node, value), (taps.ky, taps.kx))
        return averaged(node, total, taps.inside)

    layer.rows(element)


def summand(node: Node, value: te.Expr) -> te.Expr:
    """A stored element in the type that sums have."""
    return value if value.dtype.is_float else Accumulator.of(node).term(value)


def averaged(node: Node, total: te.Expr, count: te.Expr) -> te.Expr:
    """Output element of AVERAGE_POOL_2D for a sum of `count` elements."""
    op = node.op
    assert isinstance(op, Pool2D)
    if node.output.dtype is DType.FLOAT32:
        return activate(total / te.bind("count", te.cast(DType.FLOAT32, count)), op.activation)
    params = pool_params(op, node.output.type)
    count, total = te.bind("count", te.cast(total.dtype, count)), te.bind("total", total)
    half = count // 2
    rounded = te.truncdiv(te.select(total > 0, total + half, total - half), count)
    low, high = params.activation_min, params.activation_max
    return te.cast(node.output.dtype, te.clamp(rounded, low, high))


def mean(layer: Layer) -> None:
    """Emit MEAN over any axes."""
    node, op = layer.node, layer.node.op
    assert isinstance(op, Mean)
    x, shape = layer.whole(0), node.inputs[0].shape
    kept = [axis for axis in range(len(shape)) if axis not in op.axes]
    names = {axis: f"k{axis}" for axis in op.axes}

    def element(*position: te.Expr) -> te.Expr:
        reduced = {axis: te.reduce_axis(0, shape[axis], names[axis]) for axis in op.axes}
        outer = dict(zip(kept, position, strict=True))
        value = x[tuple(reduced[a] if a in reduced else outer[a] for a in range(len(shape)))]
        axes = tuple(reduced.values())
        start, term = mean_start(node), summand(node, value)
        total = te.sum(term, axes, init=start) if axes else term + start
        return mean_of(node, total)

    layer.tensor(element, tuple(shape[axis] for axis in kept))


def mean_start(node: Node) -> int | float:
    """What the sum of a MEAN begins with: the share of the zero points, 0 for floats."""
    if node.output.dtype is DType.FLOAT32:
        return 0.0
    op = node.op
    assert isinstance(op, Mean)
    params = mean_params(op, node.inputs[0].type, node.output.type)
    return -_count(node) * params.input_zero_point


def mean_of(node: Node, total: te.Expr) -> te.Expr:
    """Output element of MEAN for its sum."""
    op = node.op
    assert isinstance(op, Mean)
    if node.output.dtype is DType.FLOAT32:
        return total / float(_count(node))
    params = mean_params(op, node.inputs[0].type, node.output.type)
    scaled = requantise(Accumulator.of(node).total(total), params.multiplier)
    return stored(
        scaled, params.output_zero_point, params.minimum, params.maximum, node.output.dtype
    )


def _count(node: Node) -> int:
    """How many elements each result of a MEAN comes from."""
    return node.inputs[0].type.elements // node.output.type.elements
