"""What a depthwise convolution reads: a window of rows in scratch, or the input itself.

The rows behind an output row are copied into scratch with their borders filled, so that kernels
need no test and rings need no special case; without padding and rings they read the input itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from microtir import te
from microtir.graph.ir import Node
from microtir.lowering.convolution import windows_of
from microtir.lowering.dsp.code import at, let, loop, seq, store, when
from microtir.lowering.dsp.depthwise_kernels import Taps
from microtir.lowering.dsp.micro_kernel import call
from microtir.lowering.layer import Extents, Layer, Rows
from microtir.lowering.window import Windows
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType


@dataclass(frozen=True, slots=True)
class Geometry:
    """Shapes of a depthwise convolution; `padded` is the width of a row with its borders."""

    windows: Windows
    image: Extents
    output: Extents
    padded: int

    @staticmethod
    def of(node: Node) -> Geometry:
        windows, output = windows_of(node), Extents.of(node.output.type)
        columns = windows.columns
        padded = (output.width - 1) * columns.stride + (columns.taps - 1) * columns.dilation + 1
        return Geometry(windows, Extents.of(node.inputs[0].type), output, padded)

    @property
    def copied(self) -> int:
        """Columns of a row of the input that windows reach."""
        return min(self.image.width, self.padded - self.windows.columns.before)

    def taps(self, row_step: int) -> Taps:
        rows, columns = self.windows.rows, self.windows.columns
        return Taps(
            rows.taps, columns.taps, row_step, columns.dilation, columns.stride,
            self.image.channels,
        )  # fmt: skip

    @property
    def copied_taps(self) -> Taps:
        """The window in scratch, whose rows follow each other even if the kernel is dilated."""
        return self.taps(self.padded * self.image.channels)

    @property
    def direct_taps(self) -> Taps:
        """The window in a whole input."""
        return self.taps(self.windows.rows.dilation * self.image.width * self.image.channels)

    @property
    def scratch_bytes(self) -> int:
        """Of one window of rows with their borders."""
        return self.windows.rows.taps * self.padded * self.image.channels


Source = Callable[[te.Expr], ir.BufferArgument]
"""The first tap of the window of an output column."""

Pixels = Callable[[te.Expr, Taps, Source], ir.Stmt]
"""Computes an output row, given its window and where that begins for each column."""


class DepthwiseRows:
    """The loops of a layer function around the kernels for one output row.

    Args:
        layer: whose input and output rows are these.
        geometry: of the layer.
        x: input rows.
        can_read_input: whether the kernels reach every tap of a window in the input.
        move: the kernel that copies so many bytes.
    """

    def __init__(
        self,
        layer: Layer,
        geometry: Geometry,
        x: Rows,
        can_read_input: bool,
        move: Callable[[int], KernelDescription],
    ) -> None:
        self.layer = layer
        self.geometry = geometry
        self.x = x
        self.move = move
        inside = not geometry.windows.clip(geometry.output)
        self.reads_input = inside and x.is_whole and can_read_input
        shape = (geometry.windows.rows.taps, geometry.padded, geometry.image.channels)
        self.window = ir.Buffer("scratch", shape, DType.INT8, alignment=4)
        self.zero_point = layer.node.inputs[0].type.quant.zero_point

    def function(self, name: str, pixels: Pixels) -> ir.PrimFunc:
        """The layer function; `pixels` computes one output row."""

        def rows(row_of: Callable[[te.Expr], ir.Stmt]) -> ir.Stmt:
            return loop("row", self.layer.y0, self.layer.y1, row_of)

        if self.reads_input:
            body = rows(lambda row: self.from_input(row, pixels))
            return self.layer.function(name, None, body)
        body = seq(self.fill_borders(), rows(lambda row: self.from_window(row, pixels)))
        return self.layer.function(name, self.window, body)

    def from_input(self, row: te.Expr, pixels: Pixels) -> ir.Stmt:
        """One output row from an input that holds every window as it is."""
        top, stride = row * self.geometry.windows.rows.stride, self.geometry.windows.columns.stride
        taps = self.geometry.direct_taps
        return pixels(row, taps, lambda column: self.x.at(top, column * stride, 0))

    def from_window(self, row: te.Expr, pixels: Pixels) -> ir.Stmt:
        """One output row from scratch."""
        rows, stride = self.geometry.windows.rows, self.geometry.windows.columns.stride

        def tap(ky: te.Expr) -> ir.Stmt:
            return let(
                "y", row * rows.stride - rows.before + ky * rows.dilation,
                lambda y: when(
                    (y >= 0) & (y < rows.size), self.copy_row(ky, y), self.fill_row(ky)
                ),
            )  # fmt: skip

        taps = self.geometry.copied_taps
        return seq(
            loop("ky", 0, rows.taps, tap),
            pixels(row, taps, lambda column: at(self.window, 0, column * stride, 0)),
        )

    def fill_borders(self) -> ir.Stmt:
        """The columns left and right of the image, once: rows are copied between them."""
        before = self.geometry.windows.columns.before
        after = before + self.geometry.copied
        taps = self.geometry.windows.rows.taps
        parts = [(a, b) for a, b in ((0, before), (after, self.geometry.padded)) if a < b]
        if not parts:
            return seq()
        return loop("ky", 0, taps, lambda ky: seq(*(self.fill(ky, a, b) for a, b in parts)))

    def fill_row(self, ky: te.Expr) -> ir.Stmt:
        """A row outside the image."""
        before = self.geometry.windows.columns.before
        return self.fill(ky, before, before + self.geometry.copied)

    def fill(self, ky: te.Expr, first: int, stop: int) -> ir.Stmt:
        channels = self.geometry.image.channels
        return loop(
            "col", first, stop,
            lambda column: loop(
                "ch", 0, channels,
                lambda channel: store(self.window, (ky, column, channel), self.zero_point),
            ),
        )  # fmt: skip

    def copy_row(self, ky: te.Expr, y: te.Expr) -> ir.Stmt:
        geometry = self.geometry
        size = geometry.copied * geometry.image.channels
        target = at(self.window, ky, geometry.windows.columns.before, 0)
        return call(self.move(size), self.x.at(y, 0, 0), target)
