"""Pooling over runs: what lies next to each other in memory is taken at once, all channels of it.

A window goes into scratch run by run, and from there out; a run is a row of the window, or the
whole of it.  Windows that leave the image are taken pixel by pixel; averages are only of those that
do not, since the divisor is a constant.  A global average may also be fed row by row: then what is
scratch otherwise are the accumulators.

The micro-kernels are those of an instruction set (`PoolKernels`); the loops around them are the
same for all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer, Rows
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.pool_kernels import PoolKernels, divides_exactly
from microtir.kernels.common.statements import at, let, loop, seq, when
from microtir.operators.common.linear import rescales_in_float
from microtir.operators.common.rows import Extents, RowWindow
from microtir.operators.common.windows import Windows
from microtir.operators.pooling.definition import AveragePool2D, MaxPool2D, Pool2D, pool_params
from microtir.operators.pooling.formula import averaged, windows_of
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir, visitor
from microtir.tir.function import RowRange

_IMMEDIATE = 4095  # largest addend
_LARGEST_RUN = 1 << 11  # pixels


@dataclass(frozen=True, slots=True)
class Pool:
    """One pooling operator."""

    windows: Windows
    image: Extents
    output: Extents
    averages: bool
    low: int
    high: int

    @staticmethod
    def of(node: Node) -> Pool:
        op = node.attributes(Pool2D)
        params = pool_params(op, node.output.type)
        return Pool(
            windows_of(node),
            Extents.of(node.inputs[0].type),
            Extents.of(node.output.type),
            isinstance(op, AveragePool2D),
            params.activation_min,
            params.activation_max,
        )

    @property
    def taps(self) -> int:
        return self.windows.rows.taps * self.windows.columns.taps

    @property
    def dtype(self) -> DType:
        """Return the type of what is collected in scratch."""
        return DType.INT16 if self.averages else DType.INT8

    @property
    def clips(self) -> bool:
        return self.windows.clip(self.output)

    @property
    def is_run(self) -> bool:
        """Return whether a window in a whole input is one run."""
        return not self.clips and self.windows.columns.taps == self.image.width

    @property
    def runs(self) -> int:
        """Return how many runs the window of an output pixel is taken in."""
        if self.is_run:
            return 1
        rows = self.windows.rows.taps
        return self.taps if self.windows.columns.clips(self.output.width) else rows

    def collected(self) -> ir.Buffer:
        """Return a sum or a maximum for each channel."""
        # One row, so that whoever follows rows of buffers sees one span of bytes.
        return ir.Buffer("scratch", (1, self.image.channels), self.dtype, alignment=4)


def refusal(node: Node) -> Refusal | None:
    """Return what speaks against it.

    Int8, one image, averages inside it, maxima without upper clamp.
    """
    if node.inputs[0].dtype is not DType.INT8:
        return Refusal.TYPES
    pool = Pool.of(node)
    if pool.image.images != 1:
        return Refusal.IMAGES
    if not 0 < pool.image.channels <= _IMMEDIATE or pool.taps > _LARGEST_RUN:
        return Refusal.SIZES
    if pool.averages:
        return None if not pool.clips and divides_exactly(pool.taps) else Refusal.WINDOWS
    return None if pool.high == DType.INT8.max else Refusal.CLAMP


class _ByRuns(Kernel):
    """A kernel whose micro-kernels are those of an instruction set."""

    def __init__(self, name: str, micro_kernels: PoolKernels) -> None:
        self.name, self.micro_kernels = name, micro_kernels
        self.needs, self.cycles = micro_kernels.needs, micro_kernels.cycles

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of a run, and of the averages, beyond the loops of the direct kernel."""
        averages, maxima = self.micro_kernels.code_bytes
        return averages if Pool.of(node).averages else maxima


class PoolRowsByRuns(_ByRuns):
    """Averages of whole images, whose rows are added to sums as they come.

    What is rescaled in float32 differs in what is made of the sums alone.
    """

    operators = (AveragePool2D,)
    rescales_in_float = True

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions of rows that are added one by one, and of the averages."""
        pool, kernels = Pool.of(node), self.micro_kernels
        channels = pool.image.channels
        run, pixel = kernels.run_cost(channels, pool.dtype)
        row = 40 + run + pool.image.width * pixel
        return pool.image.height * row + kernels.finish_cost(channels, pool.dtype)

    def window(self, _node: Node) -> RowWindow | None:
        """Return one row: it is added to the sums of an output row."""
        return RowWindow()

    def accumulator_bytes(self, node: Node) -> int:
        """Return a sum for each channel."""
        pool = Pool.of(node)
        return pool.image.channels * pool.dtype.bytes

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it.

        Averages of a whole image of several rows, that come singly.
        """
        reason = refusal(node)
        if reason is not None:
            return reason
        pool = Pool.of(node)
        whole = pool.is_run and pool.windows.rows.taps == pool.image.height > 1
        return None if whole else Refusal.WINDOWS

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the function that adds rows [y0, y1): parameters x, the sums, y0 and y1."""
        kernels, pool, x = self.micro_kernels, Pool.of(layer.node), layer.input_rows(0)
        image = pool.image
        y0, y1 = te.var("y0", low=0, high=image.height), te.var("y1", low=0, high=image.height)
        sums = pool.collected()
        run, fill = kernels.add_run(image.width, image.channels), kernels.fill
        body = seq(
            when(y0 == 0, call(fill(image.channels, 0, pool.dtype), at(sums, 0, 0))),
            loop("row", y0, y1, lambda row: call(run, x.at(row, 0, 0), at(sums, 0, 0))),
        )
        rows = RowRange(y0.var, y1.var)
        return ir.PrimFunc(name, (x.buffer, sums, rows.start, rows.stop), body, row_range=rows)

    def finish(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the function that turns sums into averages: parameters sums and y."""
        if rescales_in_float(layer.node):
            return _finish_in_float(layer, name)
        pool, y = Pool.of(layer.node), layer.output_rows()
        sums = pool.collected()
        first = y.at(te.as_expr(0, DType.INT32), 0, 0)
        body = call(_average(pool, self.micro_kernels), at(sums, 0, 0), first)
        return ir.PrimFunc(name, (sums, y.buffer), body)


class PoolByRuns(_ByRuns):
    """Averages and maxima of windows."""

    operators: tuple[type[Operator], ...] = (AveragePool2D, MaxPool2D)

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions, from counts on emulated cores."""
        pool, kernels = Pool.of(node), self.micro_kernels
        channels, pixels = pool.image.channels, pool.output.height * pool.output.width
        run, pixel = kernels.run_cost(channels, pool.dtype)
        taken = pool.runs * (12 + run) + pool.taps * pixel
        finish = kernels.finish_cost(channels, pool.dtype)
        return pixels * (taken + finish + kernels.pixel_cost(channels))

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        """Return a sum or a maximum for each channel."""
        pool = Pool.of(node)
        return pool.image.channels * pool.dtype.bytes

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: output pixels one by one."""
        pool, scratch = Pool.of(layer.node), Pool.of(layer.node).collected()
        pixel = self.pixel(pool, layer.input_rows(0), layer.output_rows(), scratch)
        body = loop(
            "row", layer.y0, layer.y1,
            lambda row: loop("col", 0, pool.output.width, lambda column: pixel(row, column)),
        )  # fmt: skip
        return layer.function(name, scratch, body)

    def pixel(
        self, pool: Pool, x: Rows, y: Rows, scratch: ir.Buffer
    ) -> Callable[[te.Expr, te.Expr], ir.Stmt]:
        """Return what emits an output pixel, given its row and column."""
        kernels, channels = self.micro_kernels, pool.image.channels
        collected = at(scratch, 0, 0)
        start = kernels.fill(channels, 0 if pool.averages else pool.low, pool.dtype)
        finish = _average(pool, kernels) if pool.averages else kernels.copy(channels)
        return lambda row, column: seq(
            call(start, collected),
            _window(pool, kernels, x, collected, row, column),
            call(finish, collected, y.at(row, column, 0)),
        )

    def reject(self, node: Node) -> Refusal | None:
        return refusal(node)


def _finish_in_float(layer: Layer, name: str) -> ir.PrimFunc:
    """Return `finish` of averages that get another scale."""
    node, pool = layer.node, Pool.of(layer.node)
    sums = te.placeholder((1, pool.image.channels), pool.dtype, "scratch")

    def element(_row: te.Expr, _column: te.Expr, channel: te.Expr) -> te.Expr:
        total = te.cast(DType.INT32, sums[0, channel])
        return averaged(node, total, te.as_expr(pool.taps, DType.INT32))

    output = layer.rows(element)
    function = te.create_schedule(output).primfunc(args=(sums, output), name=name)
    # The function that adds up takes them by words.
    collected = pool.collected()
    body = visitor.substitute(function.body, {sums.buffer: collected})
    return ir.PrimFunc(name, (collected, *function.params[1:]), body)


def _average(pool: Pool, kernels: PoolKernels) -> KernelDescription:
    return kernels.average(pool.taps, pool.image.channels, pool.low, pool.high)


def _window(
    pool: Pool,
    kernels: PoolKernels,
    x: Rows,
    collected: ir.BufferArgument,
    row: te.Expr,
    column: te.Expr,
) -> ir.Stmt:
    """Take the window of an output pixel into scratch."""
    rows, columns = pool.windows.rows, pool.windows.columns
    top, left = row * rows.stride - rows.before, column * columns.stride - columns.before

    def take(pixels: int, y: te.Expr, x_column: te.Expr) -> ir.Stmt:
        make = kernels.add_run if pool.averages else kernels.max_run
        return call(make(pixels, pool.image.channels), x.at(y, x_column, 0), collected)

    if pool.is_run and x.is_whole:
        return take(pool.taps, top, left)

    def run(y: te.Expr) -> ir.Stmt:
        if not columns.clips(pool.output.width):
            return take(columns.taps, y, left)

        def tap(x_column: te.Expr) -> ir.Stmt:
            return when((x_column >= 0) & (x_column < columns.size), take(1, y, x_column))

        return loop("kx", 0, columns.taps, lambda kx: let("x_col", left + kx, tap))

    def kernel_row(y: te.Expr) -> ir.Stmt:
        if not rows.clips(pool.output.height):
            return run(y)
        return when((y >= 0) & (y < rows.size), run(y))

    return loop("ky", 0, rows.taps, lambda ky: let("y", top + ky, kernel_row))
