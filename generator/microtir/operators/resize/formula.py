"""Compute resized images from tables of coordinates and weights."""

from __future__ import annotations

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.operators.common.arithmetic import int32, long, wide
from microtir.operators.common.formula import FormulaContext
from microtir.operators.resize import definition as resize


def resize_nearest(layer: FormulaContext) -> None:
    """Emit RESIZE_NEAREST_NEIGHBOR with the coordinates in two tables."""
    op, x = layer.node.attributes(resize.Resize), layer.whole(0)
    (_, in_h, in_w, _), (_, out_h, out_w, _) = layer.node.inputs[0].shape, layer.node.output.shape
    rows = _indices(resize.nearest_indices(op, in_h, out_h), "source_rows")
    columns = _indices(resize.nearest_indices(op, in_w, out_w), "source_columns")
    layer.tensor(lambda n, row, col, ch: x[n, wide(rows[row]), wide(columns[col]), ch])


def resize_bilinear(layer: FormulaContext) -> None:
    """Emit RESIZE_BILINEAR with coordinates and weights in tables."""
    if layer.node.output.dtype in (DType.FLOAT32, DType.UINT8):
        _bilinear_float(layer)
    else:
        _bilinear_integer(layer)


def _bilinear_integer(layer: FormulaContext) -> None:
    """Weigh by 10 bits per axis; the sum is divided with halves away from zero."""
    op, x, node = layer.node.attributes(resize.Resize), layer.whole(0), layer.node
    (_, in_h, in_w, _), (_, out_h, out_w, _) = node.inputs[0].shape, node.output.shape
    row_axis, column_axis = (
        resize.bilinear_axis(op, in_h, out_h),
        resize.bilinear_axis(op, in_w, out_w),
    )
    y0, y1 = _indices(row_axis.lower, "rows0"), _indices(row_axis.upper, "rows1")
    x0, x1 = _indices(column_axis.lower, "columns0"), _indices(column_axis.upper, "columns1")
    wy = te.constant(int32(np.array(row_axis.weight)), "row_weights")
    wx = te.constant(int32(np.array(column_axis.weight)), "column_weights")
    one = 1 << resize.BILINEAR_BITS
    # Twice 10 bits of weights leave 12 for an element in 32.
    number = wide if node.output.dtype is DType.INT8 else long

    def element(n: te.Expr, row: te.Expr, col: te.Expr, ch: te.Expr) -> te.Expr:
        top, bottom = wide(y0[row]), wide(y1[row])
        left, right = wide(x0[col]), wide(x1[col])
        low = te.bind("row_weight", number(wy[row]))
        near = te.bind("column_weight", number(wx[col]))
        total = te.bind(
            "total",
            number(x[n, top, left, ch]) * (one - low) * (one - near)
            + number(x[n, bottom, left, ch]) * low * (one - near)
            + number(x[n, top, right, ch]) * (one - low) * near
            + number(x[n, bottom, right, ch]) * low * near,
        )
        half = 1 << (2 * resize.BILINEAR_BITS - 1)
        rounded = te.truncdiv(
            te.select(total > 0, total + half, total - half), 1 << (2 * resize.BILINEAR_BITS)
        )
        return te.cast(node.output.dtype, rounded)

    layer.tensor(element)


def _bilinear_float(layer: FormulaContext) -> None:
    op, x, node = layer.node.attributes(resize.Resize), layer.whole(0), layer.node
    (_, in_h, in_w, _), (_, out_h, out_w, _) = node.inputs[0].shape, node.output.shape
    row_axis, column_axis = (
        resize.bilinear_axis_float(op, in_h, out_h),
        resize.bilinear_axis_float(op, in_w, out_w),
    )
    y0, y1 = _indices(row_axis.lower, "rows0"), _indices(row_axis.upper, "rows1")
    x0, x1 = _indices(column_axis.lower, "columns0"), _indices(column_axis.upper, "columns1")
    wy = te.constant(np.array(row_axis.fraction, np.float32), "row_weights")
    wx = te.constant(np.array(column_axis.fraction, np.float32), "column_weights")

    is_stored = node.output.dtype is DType.UINT8

    def weighed(value: te.Expr, by_row: te.Expr, by_column: te.Expr) -> te.Expr:
        if not is_stored:
            return value * by_row * by_column
        # Each sum is rounded: what is stored must not depend on a compiler.
        return te.no_fp_contract(te.cast(DType.FLOAT32, value) * by_row * by_column)

    def element(n: te.Expr, row: te.Expr, col: te.Expr, ch: te.Expr) -> te.Expr:
        top, bottom = wide(y0[row]), wide(y1[row])
        left, right = wide(x0[col]), wide(x1[col])
        low = te.bind("row_weight", wy[row])
        near = te.bind("column_weight", wx[col])
        rest, far = te.bind("row_rest", 1.0 - low), te.bind("column_rest", 1.0 - near)
        total = (
            weighed(x[n, top, left, ch], rest, far)
            + weighed(x[n, bottom, left, ch], low, far)
            + weighed(x[n, top, right, ch], rest, near)
            + weighed(x[n, bottom, right, ch], low, near)
        )
        return te.cast(DType.UINT8, total + 0.5) if is_stored else total

    layer.tensor(element)


def _indices(values: tuple[int, ...], name: str) -> te.Tensor:
    """Return a table of input coordinates in the narrowest type that holds them."""
    dtype = np.uint8 if max(values) <= 255 else np.uint16
    return te.constant(np.array(values, dtype), name)
