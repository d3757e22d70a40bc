"""Reductions over the whole height of an image, fed row by row.

Two functions: the first adds rows [y0, y1) of the input to accumulators, beginning anew at row 0;
the second turns them into the output.  A streaming group can so end in a global average without
keeping more than a row.  Terms are added in the order of the direct kernel, so that sums of
floats are the same to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.macs import macs
from microtir.kernels.common.layer import Edge, Layer
from microtir.operators.common.arithmetic import summand
from microtir.operators.convolution import formula as convolution
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.pooling import formula as pooling
from microtir.operators.pooling.definition import Pool2D
from microtir.operators.reduction import formula as reduction
from microtir.operators.reduction.definition import Mean
from microtir.plan.ir import Refusal
from microtir.tir.function import RowRange
from microtir.tir.ir import PrimFunc
from microtir.tir.visitor import substitute

_Axes = tuple[te.ReduceAxis, ...]

Term = Callable[[te.Expr, te.Expr, te.Expr], tuple[te.Expr, _Axes]]
"""What (row, column, channel) adds, and the axes within the row that it is summed over."""


@dataclass(frozen=True, slots=True)
class _Reduction:
    """One operator: what its sums begin with, what a row adds, what they become."""

    start: Callable[[te.Expr], te.ExprLike]
    term: Callable[[Edge], Term]
    result: Callable[[te.Expr, te.Expr, te.Expr], te.Expr]  # total, column, channel


def refusal(node: Node) -> Refusal | None:
    """Return what speaks against it: one row of output, to which every row of the input adds."""
    x, y, op = node.inputs[0], node.outputs[0], node.op
    if len(x.shape) != 4 or x.shape[0] != 1:
        return Refusal.IMAGES
    if x.shape[1] < 2:
        return Refusal.WINDOWS
    if isinstance(op, Mean):
        return None if op.axes == (1, 2) else Refusal.WINDOWS
    if isinstance(op, Conv2D | DepthwiseConv2D):
        rows = convolution.windows_of(node).rows
        if node.inputs[0].dtype is not DType.INT8:
            return Refusal.TYPES
    else:
        assert isinstance(op, Pool2D)
        rows = pooling.windows_of(node).rows
    whole = y.type.rows == 1 and rows.before + x.shape[1] <= rows.taps and rows.dilation == 1
    return None if whole else Refusal.WINDOWS


def accumulator_bytes(node: Node) -> int:
    """Return the bytes of the accumulators."""
    columns, channels = _extents(node)
    return columns * channels * DType.INT32.bytes


def cost(node: Node) -> int:
    """Return the instructions of all rows, from counts of emulated boards."""
    if isinstance(node.op, DepthwiseConv2D):
        return 17 * macs(node)
    return 9 * macs(node) or 7 * node.inputs[0].type.elements


def emit(layer: Layer, name: str) -> PrimFunc:
    """Emit the function that adds rows: parameters x, the accumulators, y0 and y1."""
    node, x = layer.node, layer.image(0)
    reduction, height = _reduction(layer), x.type.rows
    y0, y1 = te.var("y0", low=0, high=height), te.var("y1", low=0, high=height)
    before = te.placeholder(_extents(node), _accumulator_type(node), "before")

    def element(column: te.Expr, channel: te.Expr) -> te.Expr:
        row = te.reduce_axis(y0, y1, "row")
        value, axes = reduction.term(x)(row, column, channel)
        start = te.as_expr(reduction.start(channel), before.dtype)
        return te.sum(value, (row, *axes), te.select(y0 == 0, start, before[column, channel]))

    sums = te.compute(_extents(node), element, "sums", axes=("col", "ch"))
    arguments = (x.storage, before, sums, y0, y1)
    function = te.create_schedule(sums).primfunc(args=arguments, name=name)
    # Each element is read only where it is then written, so both are one array.
    params = tuple(p for p in function.params if p is not before.buffer)
    body = substitute(function.body, {before.buffer: sums.buffer})
    return PrimFunc(name, params, body, row_range=RowRange(y0.var, y1.var))


def emit_finish(layer: Layer, name: str) -> PrimFunc:
    """Emit the function that turns accumulators into the output: parameters sums and y."""
    node = layer.node
    reduction = _reduction(layer)
    sums = te.placeholder(_extents(node), _accumulator_type(node), "sums")
    output = layer.rows(
        lambda _row, column, channel: reduction.result(sums[column, channel], column, channel)
    )
    return te.create_schedule(output).primfunc(args=(sums, output), name=name)


def _extents(node: Node) -> tuple[int, int]:
    """Return columns and channels of the accumulators."""
    channels = node.output.shape[-1]
    return node.output.type.elements // channels, channels


def _accumulator_type(node: Node) -> DType:
    return DType.FLOAT32 if node.inputs[0].dtype.is_float else DType.INT32


def _reduction(layer: Layer) -> _Reduction:
    if isinstance(layer.node.op, Mean):
        return _mean(layer)
    if isinstance(layer.node.op, Pool2D):
        return _average(layer)
    return _convolution(layer)


def _mean(layer: Layer) -> _Reduction:
    node = layer.node

    def term(x: Edge) -> Term:
        def of(row: te.Expr, _column: te.Expr, channel: te.Expr) -> tuple[te.Expr, _Axes]:
            kx = te.reduce_axis(0, x.extents.width, "kx")
            return summand(layer, x.at(row, kx, channel)), (kx,)

        return of

    start = reduction.mean_start(node)
    return _Reduction(lambda _: start, term, lambda total, *_: reduction.mean_of(layer, total))


def _average(layer: Layer) -> _Reduction:
    node = layer.node
    windows, rows = pooling.windows_of(node), node.inputs[0].type.rows

    def term(x: Edge) -> Term:
        def of(row: te.Expr, column: te.Expr, channel: te.Expr) -> tuple[te.Expr, _Axes]:
            kx = windows.columns.axis(column, "kx")
            at = windows.columns.position(column, kx)
            return summand(layer, x.at(row, at, channel)), (kx,)

        return of

    def result(total: te.Expr, column: te.Expr, _channel: te.Expr) -> te.Expr:
        kx = windows.columns.axis(column, "kx")
        return pooling.averaged(node, total, (kx.stop - kx.start) * rows)

    return _Reduction(lambda _: 0, term, result)


def _convolution(layer: Layer) -> _Reduction:
    node, windows = layer.node, convolution.windows_of(layer.node)
    arithmetic = convolution.Int8Arithmetic.of(layer, windows)
    weights, before = layer.weights, windows.rows.before

    def term(x: Edge) -> Term:
        def of(row: te.Expr, column: te.Expr, channel: te.Expr) -> tuple[te.Expr, _Axes]:
            kx, ky = windows.columns.axis(column, "kx"), row + before
            at = windows.columns.position(column, kx)
            if isinstance(node.op, DepthwiseConv2D):
                source = channel // node.op.depth_multiplier
                weight = weights[0, ky, kx, channel]
                return arithmetic.product(x.at(row, at, source), weight), (kx,)
            ic = te.reduce_axis(0, x.extents.channels, "ic")
            return arithmetic.product(x.at(row, at, ic), weights[channel, ky, kx, ic]), (kx, ic)

        return of

    return _Reduction(
        arithmetic.start,
        term,
        lambda total, _column, channel: arithmetic.stored(total, channel),
    )
