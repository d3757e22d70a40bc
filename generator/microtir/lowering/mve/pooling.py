"""AVERAGE_POOL_2D and MAX_POOL_2D: a window goes into scratch run by run, and from there out.

A run is what a row of the window, or the whole of it, has next to each other in memory.  Windows
that leave the image are taken pixel by pixel; averages are only of those that do not, since the
divisor is a constant.
"""

from __future__ import annotations

from dataclasses import dataclass

from microtir import te
from microtir.graph.ir import Node
from microtir.graph.ops import AveragePool2D, Pool2D
from microtir.graph.quantization import pool_params
from microtir.lowering.dsp.code import at, let, loop, seq, when
from microtir.lowering.dsp.micro_kernel import call
from microtir.lowering.layer import Extents, Layer, Rows
from microtir.lowering.mve.copy_kernels import copy, fill
from microtir.lowering.mve.pooling_kernels import add_run, average, divides_exactly, max_run
from microtir.lowering.pooling import windows_of
from microtir.lowering.window import Windows
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType

_IMMEDIATE = 4095  # largest addend
_LARGEST_RUN = 1 << 11  # pixels


@dataclass(frozen=True, slots=True)
class _Pool:
    """One pooling operator."""

    windows: Windows
    image: Extents
    output: Extents
    averages: bool
    low: int
    high: int

    @staticmethod
    def of(node: Node) -> _Pool:
        op = node.op
        assert isinstance(op, Pool2D)
        params = pool_params(op, node.output.type)
        return _Pool(
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
        """Of what is collected in scratch."""
        return DType.INT16 if self.averages else DType.INT8

    @property
    def clips(self) -> bool:
        return self.windows.clip(self.output)

    @property
    def is_run(self) -> bool:
        """Whether a window in a whole input is one run."""
        return not self.clips and self.windows.columns.taps == self.image.width

    def run(self, pixels: int) -> KernelDescription:
        """Takes neighbouring pixels into scratch."""
        make = add_run if self.averages else max_run
        return make(pixels, self.image.channels)


def accepts(node: Node) -> bool:
    """int8 over one image; averages of windows inside it, maxima without an upper clamp."""
    if node.inputs[0].dtype is not DType.INT8:
        return False
    pool = _Pool.of(node)
    if pool.image.images != 1 or not 0 < pool.image.channels <= _IMMEDIATE:
        return False
    if pool.taps > _LARGEST_RUN:
        return False
    if pool.averages:
        return not pool.clips and divides_exactly(pool.taps)
    return pool.high == DType.INT8.max


def scratch_bytes(node: Node) -> int:
    """A sum or a maximum for each channel."""
    pool = _Pool.of(node)
    return pool.image.channels * pool.dtype.bytes


def cost(node: Node) -> int:
    """Instructions, from counts of the emulated Cortex-M55."""
    pool = _Pool.of(node)
    channels, lanes = pool.image.channels, 16 // pool.dtype.bytes
    runs = pool.taps if pool.windows.columns.clips(pool.output.width) else pool.windows.rows.taps
    vectors = -(-channels // lanes)
    taken = runs * (20 + vectors * 5) + pool.taps * vectors * 2
    finish = channels * 9 // 4 if pool.averages else channels // 8
    return pool.output.height * pool.output.width * (taken + finish + 40)


def emit(layer: Layer, name: str) -> ir.PrimFunc:
    """The layer function: output pixels one by one."""
    pool = _Pool.of(layer.node)
    x, y = layer.input_rows(0), layer.output_rows()
    channels = pool.image.channels
    # One row, so that whoever follows rows of buffers sees one span of bytes.
    scratch = ir.Buffer("scratch", (1, channels), pool.dtype, alignment=4)
    collected = at(scratch, 0, 0)
    start = fill(channels, 0 if pool.averages else pool.low, pool.dtype)
    finish = average(pool.taps, channels, pool.low, pool.high) if pool.averages else copy(channels)

    def pixel(row: te.Expr, column: te.Expr) -> ir.Stmt:
        return seq(
            call(start, collected),
            _window(pool, x, collected, row, column),
            call(finish, collected, y.at(row, column, 0)),
        )

    body = loop(
        "row", layer.y0, layer.y1,
        lambda row: loop("col", 0, pool.output.width, lambda column: pixel(row, column)),
    )  # fmt: skip
    return layer.function(name, scratch, body)


def _window(
    pool: _Pool, x: Rows, collected: ir.BufferArgument, row: te.Expr, column: te.Expr
) -> ir.Stmt:
    """Takes the window of an output pixel into scratch."""
    rows, columns = pool.windows.rows, pool.windows.columns
    top, left = row * rows.stride - rows.before, column * columns.stride - columns.before
    if pool.is_run and x.is_whole:
        return call(pool.run(pool.taps), x.at(top, left, 0), collected)

    def run(y: te.Expr) -> ir.Stmt:
        if not columns.clips(pool.output.width):
            return call(pool.run(columns.taps), x.at(y, left, 0), collected)

        def tap(x_column: te.Expr) -> ir.Stmt:
            there = (x_column >= 0) & (x_column < columns.size)
            return when(there, call(pool.run(1), x.at(y, x_column, 0), collected))

        return loop("kx", 0, columns.taps, lambda kx: let("x_col", left + kx, tap))

    def kernel_row(y: te.Expr) -> ir.Stmt:
        return (
            when((y >= 0) & (y < rows.size), run(y)) if rows.clips(pool.output.height) else run(y)
        )

    return loop("ky", 0, rows.taps, lambda ky: let("y", top + ky, kernel_row))
