"""The rows that a convolution's windows reach: of the input itself, or bordered ones in scratch.

Where windows leave the image, or rows lie in a ring, the rows behind an output row are copied into
scratch with their borders filled, so that kernels need no test and rings no special case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common import gather, macro_kernel, micro_kernel
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.layer import Layer, Rows
from microtir.kernels.common.statements import at, loop, seq, store
from microtir.schedule import KernelDescription
from microtir.tir import ir


def copy_cost(
    node: Node, *, by_rows: bool = False, copied: Callable[[int], int] | None = None
) -> int:
    """Return the instructions of copying the rows behind every output row, if that is needed.

    Rows that are called for one by one come from a ring, and every call fills the borders.

    Args:
        node: a convolution.
        by_rows: whether it is called for few rows.
        copied: gives what copying so many elements takes; None: as in plain C.
    """
    geometry = Geometry.of(node).of_all_groups
    taps, channels = geometry.windows.rows.taps, geometry.image.channels
    if not (geometry.is_bordered or (by_rows and taps > 1)):
        return 0
    elements = geometry.copied * channels
    move = (
        elements * node.inputs[0].dtype.bytes // 2 + _CALL if copied is None else copied(elements)
    )
    border = (geometry.padded - geometry.copied) * channels if by_rows else 0
    return geometry.output.height * taps * (move + _ROW + _FILL * border)


def scratch_bytes(node: Node) -> int:
    """Return the bytes of the bordered rows; a ring needs them, too."""
    geometry = Geometry.of(node).of_all_groups
    if geometry.windows.rows.taps == 1 and not geometry.is_bordered:
        return 0
    return geometry.window_elements * node.inputs[0].dtype.bytes


_FILL = 4  # instructions for each element of a border
_ROW = 12  # around the copy of a row
_CALL = 28  # of a function of C that copies


Move = Callable[[int], KernelDescription]
"""The kernel that copies so many elements; parameters: from, to."""


class WindowRows(macro_kernel.Source):
    """The rows behind an output row, whose windows a micro-kernel walks itself."""

    row_step: int  # elements between the rows of a window


class DirectRows(WindowRows):
    """Rows of the input itself.

    Args:
        x: rows of the image.
        geometry: of the layer, whose windows stay inside the image; None: each is a pixel.
        is_line: whether pixels of neighbouring rows follow each other, and micro-kernels may
            compute them together.
    """

    def __init__(self, x: Rows, geometry: Geometry | None = None, *, is_line: bool = False) -> None:
        self.x, self.is_line, self.steps, self.row_step = x, is_line, (1, 1), 0
        self.ahead = 0, 0
        if geometry is not None:
            rows, columns = geometry.windows.rows, geometry.windows.columns
            self.steps, self.row_step = (rows.stride, columns.stride), geometry.direct_step
            self.ahead = -rows.before, -columns.before

    def at(self, pixel: macro_kernel.Pixel, _count: int) -> ir.BufferArgument:
        (row, column), (down, right) = self.steps, self.ahead
        return self.x.at(pixel.row * row + down, pixel.column * column + right, 0)


class BorderedRows(WindowRows):
    """Rows in scratch, between borders that hold the zero point.

    Args:
        x: rows of the image.
        geometry: of the layer.
        move: copies part of a row.
        slack: elements behind the last row that kernels may read; if it is given, scratch is one
            row, whose borders are filled by a loop each.
        scratch: that is one row, in place of one of its own.
    """

    def __init__(
        self,
        x: Rows,
        geometry: Geometry,
        move: Move,
        slack: int | None = None,
        scratch: ir.Buffer | None = None,
    ) -> None:
        self.x, self.geometry, self.move = x, geometry, move
        dtype = x.buffer.dtype
        shape: tuple[int, ...] = (self.rows_held, geometry.padded, geometry.image.channels)
        if slack is not None:
            shape = (1, self.rows_held * geometry.copied_step + slack)
        own = ir.Buffer("scratch", shape, dtype, alignment=4)
        self.buffer = self.scratch = own if scratch is None else scratch
        zero = 0 if dtype.is_float else x.type.quant.zero_point
        self.border = te.as_expr(zero, dtype)
        self.row_step = geometry.copied_step

    @property
    def _is_flat(self) -> bool:
        return len(self.buffer.shape) == 2

    @property
    def rows_held(self) -> int:
        return self.geometry.windows.rows.taps

    def prepare(self, _counts: Sequence[int]) -> ir.Stmt:
        """Emit the columns left and right of the image, once: rows are copied between them."""
        if self.geometry.padded == self.geometry.copied:
            return seq()
        return loop("ky", 0, self.rows_held, self._borders)

    def row(self, row: te.Expr) -> ir.Stmt:
        """Emit copies of the rows behind an output row."""
        return gather.kernel_rows(self.geometry, row, self._copy, self._outside)

    def at(self, pixel: macro_kernel.Pixel, _count: int) -> ir.BufferArgument:
        column = pixel.column * self.geometry.windows.columns.stride
        return at(self.buffer, *self._place(0, column))

    def _borders(self, number: te.Expr) -> ir.Stmt:
        """Emit the columns of a row in scratch that lie beside the image."""
        before = max(self.geometry.windows.columns.before, 0)
        after = before + self.geometry.copied
        parts = ((0, before), (after, self.geometry.padded))
        return seq(*(self._fill(number, first, stop) for first, stop in parts if first < stop))

    def _outside(self, number: te.Expr) -> ir.Stmt:
        before = max(self.geometry.windows.columns.before, 0)
        return self._fill(number, before, before + self.geometry.copied)

    def _fill(self, number: te.Expr, first: int, stop: int) -> ir.Stmt:
        channels = self.geometry.image.channels

        def element(column: te.ExprLike, channel: te.Expr) -> ir.Stmt:
            return store(self.buffer, self._place(number, column, channel), self.border)

        if self._is_flat:
            return loop("i", first * channels, stop * channels, partial(element, 0))
        return loop("col", first, stop, lambda n: loop("ch", 0, channels, partial(element, n)))

    def _copy(self, number: te.Expr, y: te.Expr) -> ir.Stmt:
        size = self.geometry.copied * self.geometry.image.channels
        if not size:  # every window of the row lies beside the image
            return seq()
        before = self.geometry.windows.columns.before
        target = at(self.buffer, *self._place(number, max(before, 0)))
        return micro_kernel.call(self.move(size), self.x.at(y, max(-before, 0), 0), target)

    def _place(
        self, number: te.ExprLike, column: te.ExprLike, channel: te.ExprLike = 0
    ) -> tuple[te.ExprLike, ...]:
        if not self._is_flat:
            return number, column, channel
        row, pixel = (te.as_expr(n, DType.INT32) for n in (number, column))
        step, channels = self.geometry.copied_step, self.geometry.image.channels
        return 0, row * step + pixel * channels + channel


class BorderedImage(BorderedRows):
    """The same of all rows that a call reads, beside each other: each is copied once.

    Args:
        layer: that is called for a row range.
        geometry: of the layer.
        move: copies part of a row.
        slack: elements behind the last row that kernels may read.
        is_line: whether micro-kernels compute several rows together; blocks are of whole rows.
    """

    def __init__(
        self, layer: Layer, geometry: Geometry, move: Move, slack: int = 0, *, is_line: bool
    ) -> None:
        super().__init__(layer.input_rows(0), geometry, move, slack)
        self.y0, self.y1, self.is_line = layer.y0, layer.y1, is_line
        self.row_step *= geometry.windows.rows.dilation

    @property
    def rows_held(self) -> int:
        return self.geometry.windows.rows.reach(self.geometry.output.height)

    def prepare(self, _counts: Sequence[int]) -> ir.Stmt:
        """Emit the rows behind those of the call, between their borders."""
        rows = self.geometry.windows.rows
        count = te.maximum((self.y1 - self.y0 - 1) * rows.stride + rows.reach(1), 0)
        first = self.y0 * rows.stride - rows.before

        def fetch(number: te.Expr) -> ir.Stmt:
            copied, outside = partial(self._copy, number), partial(self._outside, number)
            copies = gather.image_row(self.geometry, first + number, copied, outside)
            return seq(self._borders(number), copies)

        return loop("number", 0, count, fetch)

    def row(self, _row: te.Expr) -> ir.Stmt:
        return seq()

    def at(self, pixel: macro_kernel.Pixel, _count: int) -> ir.BufferArgument:
        windows = self.geometry.windows
        first = (pixel.row - self.y0) * windows.rows.stride
        return at(self.buffer, *self._place(first, pixel.column * windows.columns.stride))


def window_rows(
    x: Rows,
    geometry: Geometry,
    move: Move,
    *,
    reaches_input: bool = True,
    scratch: ir.Buffer | None = None,
) -> WindowRows:
    """Return the rows behind an output row: of the input, or bordered ones where these are needed.

    Args:
        x: rows of the image.
        geometry: of the layer.
        move: copies part of a row.
        reaches_input: whether the kernels reach every tap of a window in the input itself.
        scratch: for bordered rows, in place of one of their own.
    """
    if reaches_input and not geometry.copies(x):
        return DirectRows(x, geometry)
    return BorderedRows(x, geometry, move, scratch=scratch)
