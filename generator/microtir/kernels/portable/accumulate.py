"""Reductions over the whole height of an image, fed row by row.

Two functions: the first adds rows [y0, y1) of the input to accumulators, beginning anew at row 0;
the second turns them into the output.  A streaming group can so end in a global average without
keeping more than a row.  Terms are added in the order of the direct kernel, so that sums of
floats are the same to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node, TensorType
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Edge, Layer
from microtir.kernels.common.nest import Nest
from microtir.kernels.common.packing import bytes_of
from microtir.operators import OPERATORS
from microtir.operators.common.arithmetic import summand
from microtir.operators.common.rows import Extents, RowWindow
from microtir.operators.common.weighted import stored_weights
from microtir.operators.convolution import formula as convolution
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.pooling import formula as pooling
from microtir.operators.pooling.definition import AveragePool2D, Pool2D
from microtir.operators.reduction import formula as reduction
from microtir.operators.reduction.definition import Reduction
from microtir.plan.ir import Refusal
from microtir.te.program import constants_of
from microtir.tir.analysis.work import Work, work_of
from microtir.tir.function import RowRange
from microtir.tir.ir import PrimFunc
from microtir.tir.visitor import substitute

_Axes = tuple[te.ReduceAxis, ...]

Term = Callable[[te.Expr, te.Expr, te.Expr], tuple[te.Expr, _Axes]]
"""Function from (row, column, channel) to a summand and the axes in the row that it runs over."""


Over = Callable[[te.Expr, Sequence[te.ReduceAxis], te.ExprLike], te.Expr]
"""Function that reduces values over axes, starting from its last operand, such as te.sum."""


@dataclass(frozen=True, slots=True)
class _Accumulation:
    """One operator: what its accumulators begin with, what a row adds, what they become."""

    start: Callable[[te.Expr], te.ExprLike]
    term: Callable[[Edge], Term]
    result: Callable[[te.Expr, te.Expr, te.Expr], te.Expr]  # total, column, channel
    over: Over = te.sum


def _reduced_axes(node: Node) -> frozenset[int]:
    """Return the axes of more than one element that a reduction goes over."""
    axes = node.attributes(Reduction).axes
    return frozenset(axis for axis in axes if node.inputs[0].shape[axis] > 1)


def finish_bytes(node: Node) -> int:
    """Return the bytes of the constants of the function that turns accumulators into outputs."""
    result, sums = _accumulation(Layer.alone(node)).result, _placeholder(node)
    output = te.compute(_extents(node), lambda i, ch: result(sums[i, ch], i, ch), "y")
    return bytes_of(*constants_of((output,)))


def _placeholder(node: Node, name: str = "sums") -> te.Tensor:
    return te.placeholder(_extents(node), _accumulator_type(node), name)


class RowSums(Kernel):
    """A kernel that adds rows to accumulators, which a second function turns into the output."""

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: all rows of the input add to one row of output."""
        x, y, op = node.inputs[0], node.outputs[0], node.op
        ranks = (3, 4) if isinstance(op, Reduction) else (4,)
        if len(x.shape) not in ranks or x.shape[0] != 1:
            return Refusal.IMAGES
        if x.shape[1] < 2:
            return Refusal.WINDOWS
        if isinstance(op, Reduction):
            axes = _reduced_axes(node)
            keeps_channels = len(x.shape) - 1 not in axes and y.type.channels == x.type.channels
            return None if 1 in axes and keeps_channels else Refusal.WINDOWS
        if isinstance(op, Conv2D | DepthwiseConv2D):
            rows = convolution.windows_of(node).rows
            if node.inputs[0].dtype.is_float:
                return Refusal.TYPES
        else:
            assert isinstance(op, Pool2D)
            rows = pooling.windows_of(node).rows
        whole = y.type.rows == 1 and rows.before + x.shape[1] <= rows.taps and rows.dilation == 1
        return None if whole else Refusal.WINDOWS

    def window(self, _node: Node) -> RowWindow | None:
        """Return one row: it is added to the sums of an output row."""
        return RowWindow()

    def accumulator_bytes(self, node: Node) -> int:
        columns, channels = _extents(node)
        return columns * channels * _accumulator_type(node).bytes

    def finish(self, layer: Layer, name: str) -> PrimFunc:
        """Emit the function that turns accumulators into the output: parameters sums and y."""
        node = layer.node
        accumulation, rows, width = _accumulation(layer), *_image(node.output.type)
        sums = _placeholder(node)

        def element(row: te.Expr, column: te.Expr, channel: te.Expr) -> te.Expr:
            place = column if rows == 1 else row * width + column
            return accumulation.result(sums[place, channel], place, channel)

        output = layer.rows(element)
        return te.create_schedule(output).primfunc(args=(sums, output), name=name)


class Accumulate(RowSums, Nest):
    """Input rows go into accumulators; a second function finishes."""

    name = "accumulate"
    has_wide_weights = True
    rescales_in_float = True
    operators = (
        Conv2D,
        DepthwiseConv2D,
        AveragePool2D,
        *(record.op for record in OPERATORS if issubclass(record.op, Reduction)),
    )

    def work(self, node: Node) -> Work:
        """Return the work of a call for each row, and of the function that finishes."""
        row, finish = super().work(node), work_of(self.finish(Layer.alone(node), "finish"))
        rows, kinds = node.inputs[0].type.rows, dict.fromkeys((*row, *finish))
        return {kind: rows * row.get(kind, 0) + finish.get(kind, 0) for kind in kinds}

    def packed_bytes(self, node: Node) -> int:
        """Return the bytes of the constants of both functions."""
        layer = Layer.alone(node)
        accumulation, x = _accumulation(layer), layer.image(0)

        def element(column: te.Expr, channel: te.Expr) -> te.Expr:
            row = te.reduce_axis(0, x.type.rows, "row")
            value, axes = accumulation.term(x)(row, column, channel)
            start = te.as_expr(accumulation.start(channel), _accumulator_type(node))
            return accumulation.over(value, (row, *axes), start)

        sums = te.compute(_extents(node), element, "sums")
        return bytes_of(*constants_of((sums,))) + finish_bytes(node)

    def emit(self, layer: Layer, name: str) -> PrimFunc:
        """Emit the function that adds rows: parameters x, the accumulators, y0 and y1."""
        node, x = layer.node, layer.image(0)
        accumulation, height = _accumulation(layer), x.type.rows
        y0, y1 = te.var("y0", low=0, high=height), te.var("y1", low=0, high=height)
        before = _placeholder(node, "before")

        def element(column: te.Expr, channel: te.Expr) -> te.Expr:
            row = te.reduce_axis(y0, y1, "row")
            value, axes = accumulation.term(x)(row, column, channel)
            start = te.as_expr(accumulation.start(channel), before.dtype)
            init = te.select(y0 == 0, start, before[column, channel])
            return accumulation.over(value, (row, *axes), init)

        sums = te.compute(_extents(node), element, "sums", axes=("col", "ch"))
        arguments = (x.storage, before, sums, y0, y1)
        function = te.create_schedule(sums).primfunc(args=arguments, name=name)
        # Each element is read only where it is then written, so both are one array.
        params = tuple(p for p in function.params if p is not before.buffer)
        body = substitute(function.body, {before.buffer: sums.buffer})
        return PrimFunc(name, params, body, row_range=RowRange(y0.var, y1.var))


def _extents(node: Node) -> tuple[int, int]:
    """Return columns and channels of the accumulators."""
    channels = node.output.type.channels
    return node.output.type.elements // channels, channels


def _image(type_: TensorType) -> tuple[int, int]:
    return type_.rows, Extents.of(type_).width


def _accumulator_type(node: Node) -> DType:
    if isinstance(node.op, Reduction):
        return reduction.accumulator_type(node)
    return DType.FLOAT32 if node.inputs[0].dtype.is_float else DType.INT32


def _accumulation(layer: Layer) -> _Accumulation:
    if isinstance(layer.node.op, Reduction):
        return _reduction(layer)
    if isinstance(layer.node.op, Pool2D):
        return _average(layer)
    return _convolution(layer)


def _reduction(layer: Layer) -> _Accumulation:
    steps, is_across = reduction.steps_of(layer), 2 in _reduced_axes(layer.node)

    def term(x: Edge) -> Term:
        def of(row: te.Expr, column: te.Expr, channel: te.Expr) -> tuple[te.Expr, _Axes]:
            if not is_across:
                return x.at(row, column, channel), ()
            kx = te.reduce_axis(0, x.extents.width, "kx")
            return x.at(row, kx, channel), (kx,)

        return of

    return _Accumulation(
        lambda _: steps.start, term, lambda total, *_: steps.result(total), steps.over
    )


def _average(layer: Layer) -> _Accumulation:
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

    return _Accumulation(lambda _: 0, term, result)


def _convolution(layer: Layer) -> _Accumulation:
    node, windows = layer.node, convolution.windows_of(layer.node)
    arithmetic = convolution.arithmetic_of(layer, windows)
    weights, before = stored_weights(layer), windows.rows.before

    def term(x: Edge) -> Term:
        def of(row: te.Expr, column: te.Expr, channel: te.Expr) -> tuple[te.Expr, _Axes]:
            kx, ky = windows.columns.axis(column, "kx"), row + before
            at = windows.columns.position(column, kx)
            if isinstance(node.op, DepthwiseConv2D):
                source = channel // node.op.depth_multiplier
                weight = weights[0, ky, kx, channel]
                return arithmetic.product(x.at(row, at, source), weight), (kx,)
            ic = te.reduce_axis(0, node.inputs[1].shape[3], "ic")
            source = convolution.first_channel(node, channel) + ic
            return arithmetic.product(x.at(row, at, source), weights[channel, ky, kx, ic]), (kx, ic)

        return of

    return _Accumulation(
        arithmetic.start, term, lambda total, _column, channel: arithmetic.stored(total, channel)
    )
