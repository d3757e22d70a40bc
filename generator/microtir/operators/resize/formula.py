"""Compute resized images from tables of coordinates and weights."""

from __future__ import annotations

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.operators.common.arithmetic import long, wide
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
    op, x, node = layer.node.attributes(resize.Resize), layer.whole(0), layer.node
    (in_h, in_w, _), (out_h, out_w, _) = node.inputs[0].shape[1:], node.output.shape[1:]
    is_real = node.output.dtype in (DType.FLOAT32, DType.UINT8)
    axis_of = resize.bilinear_axis_float if is_real else resize.bilinear_axis
    row_axis, column_axis = axis_of(op, in_h, out_h), axis_of(op, in_w, out_w)
    y0, y1 = _indices(row_axis.lower, "rows0"), _indices(row_axis.upper, "rows1")
    x0, x1 = _indices(column_axis.lower, "columns0"), _indices(column_axis.upper, "columns1")
    of_type, weigh = (np.float32, _in_float) if is_real else (np.int32, _in_integers)
    wy = te.constant(np.array(row_axis.weight).astype(of_type), "row_weights")
    wx = te.constant(np.array(column_axis.weight).astype(of_type), "column_weights")

    def element(n: te.Expr, row: te.Expr, col: te.Expr, ch: te.Expr) -> te.Expr:
        of_rows, of_columns = (wide(y0[row]), wide(y1[row])), (wide(x0[col]), wide(x1[col]))
        near = [x[n, y, column, ch] for column in of_columns for y in of_rows]
        return weigh(near, wy[row], wx[col], node.output.dtype)

    layer.tensor(element)


def _in_integers(near: list[te.Expr], row: te.Expr, column: te.Expr, dtype: DType) -> te.Expr:
    """Weigh by 10 bits per axis; the sum is divided with halves away from zero."""
    # Twice 10 bits of weights leave 12 for an element in 32.
    number, one = wide if dtype is DType.INT8 else long, 1 << resize.BILINEAR_BITS
    low, right = te.bind("row_weight", number(row)), te.bind("column_weight", number(column))
    weights = (one - low, one - right), (low, one - right), (one - low, right), (low, right)
    first, *others = (number(value) * a * b for value, (a, b) in zip(near, weights, strict=True))
    total = te.bind("total", sum(others, first))
    half = 1 << (2 * resize.BILINEAR_BITS - 1)
    nearest = te.select(total > 0, total + half, total - half)
    return te.cast(dtype, te.truncdiv(nearest, 1 << (2 * resize.BILINEAR_BITS)))


def _in_float(near: list[te.Expr], row: te.Expr, column: te.Expr, dtype: DType) -> te.Expr:
    """Weigh by floats; of stored integers each sum is rounded, whatever the compiler."""
    low, right = te.bind("row_weight", row), te.bind("column_weight", column)
    rest, far = te.bind("row_rest", 1.0 - low), te.bind("column_rest", 1.0 - right)
    weights = (rest, far), (low, far), (rest, right), (low, right)
    first, *others = (
        te.no_fp_contract(te.cast(DType.FLOAT32, value) * a * b)
        if dtype is DType.UINT8 else value * a * b
        for value, (a, b) in zip(near, weights, strict=True)
    )  # fmt: skip
    total = sum(others, first)
    return te.cast(DType.UINT8, total + 0.5) if dtype is DType.UINT8 else total


def _indices(values: tuple[int, ...], name: str) -> te.Tensor:
    """Return a table of input coordinates in the narrowest type that holds them."""
    dtype = np.uint8 if max(values) <= 255 else np.uint16
    return te.constant(np.array(values, dtype), name)
