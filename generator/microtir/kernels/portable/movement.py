"""Operators that move elements: each output element is one input element or a constant."""

from __future__ import annotations

import numpy as np

from microtir import te
from microtir.graph.ir import Node
from microtir.kernels.common.layer import Layer, int32
from microtir.kernels.portable.arithmetic import wide
from microtir.operators.movement.definition import (
    Concatenation,
    Pad,
    Split,
    StridedSlice,
    Transpose,
)
from microtir.operators.resize.definition import (
    BILINEAR_BITS,
    Resize,
    bilinear_axis,
    bilinear_axis_float,
    nearest_indices,
)
from microtir.operators.streaming.definition import PlaceColumns
from microtir.tir.dtype import DType


def copy(layer: Layer) -> None:
    """Emit RESHAPE where the output cannot share its input's memory."""
    x = layer.whole(0, (layer.node.output.type.elements,))
    layer.tensor(lambda i: x[i], (layer.node.output.type.elements,))


def rows(layer: Layer) -> None:
    """Emit READ_ROWS and WRITE_ROWS: what the application does row by row, as a copy."""
    x = layer.image(0)
    layer.rows(x.at)


def pad(layer: Layer) -> None:
    """Emit PAD and PADV2."""
    op, x = layer.node.op, layer.whole(0)
    assert isinstance(op, Pad)
    shape, dtype = layer.node.inputs[0].shape, layer.node.output.dtype
    fill = te.const(op.value if dtype.is_float else int(op.value), dtype)

    def element(*at: te.Expr) -> te.Expr:
        source = tuple(i - before for i, before in zip(at, op.before, strict=True))
        inside = te.as_expr(True)
        for i, extent, before, after in zip(source, shape, op.before, op.after, strict=True):
            if before:
                inside = inside & (i >= 0)
            if after:
                inside = inside & (i < extent)
        return te.select(inside, x[source], fill)

    layer.tensor(element)


def concatenation(layer: Layer) -> None:
    """Emit CONCATENATION; a chain of selects finds the input that holds an element."""
    op, node = layer.node.op, layer.node
    assert isinstance(op, Concatenation)
    parts = [layer.whole(position) for position in range(len(node.inputs))]
    ends = np.cumsum([t.shape[op.axis] for t in node.inputs]).tolist()
    starts = [0, *ends[:-1]]

    def element(*at: te.Expr) -> te.Expr:
        along = at[op.axis]

        def read(part: int) -> te.Expr:
            index = tuple(i - starts[part] if a == op.axis else i for a, i in enumerate(at))
            return parts[part][index]

        value = read(len(parts) - 1)
        for part in reversed(range(len(parts) - 1)):
            value = te.select(along < ends[part], read(part), value)
        return value

    layer.tensor(element)


def transpose(layer: Layer) -> None:
    """Emit TRANSPOSE."""
    op, x = layer.node.op, layer.whole(0)
    assert isinstance(op, Transpose)
    source = [op.permutation.index(axis) for axis in range(len(op.permutation))]
    layer.tensor(lambda *at: x[tuple(at[axis] for axis in source)])


def split(layer: Layer) -> None:
    """Emit SPLIT: one nest per output."""
    op, x = layer.node.op, layer.whole(0)
    assert isinstance(op, Split)
    extent = layer.node.outputs[0].shape[op.axis]
    for part in range(len(layer.node.outputs)):
        offset = part * extent
        layer.tensor(lambda *at, o=offset: x[_shifted(at, op.axis, o)])


def _shifted(at: tuple[te.Expr, ...], axis: int, offset: int) -> tuple[te.Expr, ...]:
    return tuple(i + offset if a == axis else i for a, i in enumerate(at))


def place_columns(layer: Layer) -> None:
    """Emit PLACE_COLUMNS: rows of a narrow image into those of a wide one."""
    op, x = layer.node.op, layer.image(0)
    assert isinstance(op, PlaceColumns)
    layer.columns(x.at, op.column, op.width)


def slices_within_rows(node: Node) -> bool:
    """Whether a slice takes some of the elements of every row of images."""
    op, shape = node.op, node.inputs[0].shape
    assert isinstance(op, StridedSlice)
    return (
        len(shape) == 4
        and node.output.shape == op.extent
        and op.begin[:2] == (0, 0)
        and op.strides[:2] == (1, 1)
        and op.extent[:2] == shape[:2]
    )


def strided_slice(layer: Layer) -> None:
    """Emit SLICE and STRIDED_SLICE over the extents taken, dropped axes being of extent 1."""
    op = layer.node.op
    assert isinstance(op, StridedSlice)
    if layer.takes_row_range:
        image = layer.image(0)
        (column, channel), (by_column, by_channel) = op.begin[2:], op.strides[2:]
        layer.rows(
            lambda row, x, ch: image.at(row, column + x * by_column, channel + ch * by_channel)
        )
        return
    x = layer.whole(0)
    layer.tensor(
        lambda *at: x[tuple(b + i * s for b, i, s in zip(op.begin, at, op.strides, strict=True))],
        op.extent,
    )


def resize_nearest(layer: Layer) -> None:
    """Emit RESIZE_NEAREST_NEIGHBOR with the coordinates in two tables."""
    op, x = layer.node.op, layer.whole(0)
    assert isinstance(op, Resize)
    (_, in_h, in_w, _), (_, out_h, out_w, _) = layer.node.inputs[0].shape, layer.node.output.shape
    rows = _indices(nearest_indices(op, in_h, out_h), "source_rows")
    columns = _indices(nearest_indices(op, in_w, out_w), "source_columns")
    layer.tensor(lambda n, row, col, ch: x[n, wide(rows[row]), wide(columns[col]), ch])


def resize_bilinear(layer: Layer) -> None:
    """Emit RESIZE_BILINEAR with coordinates and weights in tables."""
    if layer.node.output.dtype is DType.FLOAT32:
        _bilinear_float(layer)
    else:
        _bilinear_integer(layer)


def _bilinear_integer(layer: Layer) -> None:
    """Weights of 10 bits per axis; the product of both is divided with halves away from zero."""
    op, x, node = layer.node.op, layer.whole(0), layer.node
    assert isinstance(op, Resize)
    (_, in_h, in_w, _), (_, out_h, out_w, _) = node.inputs[0].shape, node.output.shape
    row_axis, column_axis = bilinear_axis(op, in_h, out_h), bilinear_axis(op, in_w, out_w)
    y0, y1 = _indices(row_axis.lower, "rows0"), _indices(row_axis.upper, "rows1")
    x0, x1 = _indices(column_axis.lower, "columns0"), _indices(column_axis.upper, "columns1")
    wy = te.constant(int32(np.array(row_axis.weight)), "row_weights")
    wx = te.constant(int32(np.array(column_axis.weight)), "column_weights")
    one = 1 << BILINEAR_BITS

    def element(n: te.Expr, row: te.Expr, col: te.Expr, ch: te.Expr) -> te.Expr:
        top, bottom = wide(y0[row]), wide(y1[row])
        left, right = wide(x0[col]), wide(x1[col])
        low = te.bind("row_weight", wy[row])
        near = te.bind("column_weight", wx[col])
        total = te.bind(
            "total",
            wide(x[n, top, left, ch]) * (one - low) * (one - near)
            + wide(x[n, bottom, left, ch]) * low * (one - near)
            + wide(x[n, top, right, ch]) * (one - low) * near
            + wide(x[n, bottom, right, ch]) * low * near,
        )
        half = 1 << (2 * BILINEAR_BITS - 1)
        rounded = te.truncdiv(
            te.select(total > 0, total + half, total - half), 1 << (2 * BILINEAR_BITS)
        )
        return te.cast(node.output.dtype, rounded)

    layer.tensor(element)


def _bilinear_float(layer: Layer) -> None:
    op, x, node = layer.node.op, layer.whole(0), layer.node
    assert isinstance(op, Resize)
    (_, in_h, in_w, _), (_, out_h, out_w, _) = node.inputs[0].shape, node.output.shape
    row_axis, column_axis = (
        bilinear_axis_float(op, in_h, out_h),
        bilinear_axis_float(op, in_w, out_w),
    )
    y0, y1 = _indices(row_axis.lower, "rows0"), _indices(row_axis.upper, "rows1")
    x0, x1 = _indices(column_axis.lower, "columns0"), _indices(column_axis.upper, "columns1")
    wy = te.constant(np.array(row_axis.fraction, np.float32), "row_weights")
    wx = te.constant(np.array(column_axis.fraction, np.float32), "column_weights")

    def element(n: te.Expr, row: te.Expr, col: te.Expr, ch: te.Expr) -> te.Expr:
        top, bottom = wide(y0[row]), wide(y1[row])
        left, right = wide(x0[col]), wide(x1[col])
        low = te.bind("row_weight", wy[row])
        near = te.bind("column_weight", wx[col])
        rest, far = te.bind("row_rest", 1.0 - low), te.bind("column_rest", 1.0 - near)
        return (
            x[n, top, left, ch] * rest * far
            + x[n, bottom, left, ch] * low * far
            + x[n, top, right, ch] * rest * near
            + x[n, bottom, right, ch] * low * near
        )

    layer.tensor(element)


def _indices(values: tuple[int, ...], name: str) -> te.Tensor:
    """A table of input coordinates in the narrowest type that holds them."""
    dtype = np.uint8 if max(values) <= 255 else np.uint16
    return te.constant(np.array(values, dtype), name)
