"""The rows that a convolution's windows reach: of the input itself, or bordered ones in scratch.

Where windows leave the image, or rows lie in a ring, the rows behind an output row are copied into
scratch with their borders filled, so that kernels need no test and rings no special case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from microtir import te
from microtir.graph.ir import Node
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.layer import Rows
from microtir.kernels.common.macro_kernel import Pixel, Source
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.statements import at, let, loop, seq, store, when
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType


def copy_cost(node: Node, *, by_rows: bool = False) -> int:
    """Return the instructions of copying the rows behind every output row, if that is needed.

    Rows that are called for one by one come from a ring, and every call fills the borders.
    """
    geometry = Geometry.of(node)
    taps, channels = geometry.windows.rows.taps, geometry.image.channels
    if not (geometry.is_bordered or (by_rows and taps > 1)):
        return 0
    size = geometry.copied * channels * node.inputs[0].dtype.bytes
    border = (geometry.padded - geometry.copied) * channels if by_rows else 0
    return geometry.output.height * taps * (size // 2 + 40 + _FILL * border)


def scratch_bytes(node: Node) -> int:
    """Return the bytes of the bordered rows; a ring needs them, too."""
    geometry = Geometry.of(node)
    if geometry.windows.rows.taps == 1 and not geometry.is_bordered:
        return 0
    return geometry.window_elements * node.inputs[0].dtype.bytes


_FILL = 4  # instructions for each element of a border


Move = Callable[[int], KernelDescription]
"""The kernel that copies so many elements; parameters: from, to."""


def kernel_rows(
    geometry: Geometry,
    row: te.Expr,
    inside: Callable[[te.Expr, te.Expr], ir.Stmt],
    outside: Callable[[te.Expr], ir.Stmt],
    first: te.ExprLike = 0,
) -> ir.Stmt:
    """Emit `inside(ky, row of the input)` for each row behind an output row, or `outside(ky)`.

    Args:
        geometry: of the convolution.
        row: of the output.
        inside: what is done for a row of the image.
        outside: what is done in place of a row above or below it.
        first: kernel row.
    """
    rows = geometry.windows.rows

    def kernel_row(ky: te.Expr) -> ir.Stmt:
        def there(y: te.Expr) -> ir.Stmt:
            if not rows.clips(geometry.output.height):
                return inside(ky, y)
            return when((y >= 0) & (y < rows.size), inside(ky, y), outside(ky))

        return let("y", row * rows.stride - rows.before + ky * rows.dilation, there)

    return loop("ky", first, rows.taps, kernel_row)


class WindowRows(Source):
    """The rows behind an output row, whose windows a micro-kernel walks itself."""

    row_step: int  # elements between the rows of a window


class DirectRows(WindowRows):
    """Rows of the input itself.

    Args:
        x: rows of the image.
        geometry: of the layer, whose windows stay inside the image.
        is_line: whether pixels of neighbouring rows follow each other, and micro-kernels may
            compute them together.
    """

    def __init__(self, x: Rows, geometry: Geometry, *, is_line: bool = False) -> None:
        self.x, self.geometry, self.is_line = x, geometry, is_line
        self.row_step = geometry.direct_step

    def at(self, pixel: Pixel, _count: int) -> ir.BufferArgument:
        windows = self.geometry.windows
        return self.x.at(pixel.row * windows.rows.stride, pixel.column * windows.columns.stride, 0)


class BorderedRows(WindowRows):
    """Rows in scratch, between borders that hold the zero point.

    Args:
        x: rows of the image.
        geometry: of the layer.
        move: copies part of a row.
    """

    def __init__(self, x: Rows, geometry: Geometry, move: Move) -> None:
        self.x, self.geometry, self.move = x, geometry, move
        dtype = x.buffer.dtype
        shape = (geometry.windows.rows.taps, geometry.padded, geometry.image.channels)
        self.buffer = self.scratch = ir.Buffer("scratch", shape, dtype, alignment=4)
        zero = x.type.quant.zero_point if dtype is DType.INT8 else 0
        self.border = te.as_expr(zero, dtype)
        self.row_step = geometry.copied_step

    def prepare(self, _counts: Sequence[int]) -> ir.Stmt:
        """Emit the columns left and right of the image, once: rows are copied between them."""
        before = self.geometry.windows.columns.before
        after = before + self.geometry.copied
        taps = self.geometry.windows.rows.taps
        parts = [(a, b) for a, b in ((0, before), (after, self.geometry.padded)) if a < b]
        if not parts:
            return seq()
        return loop("ky", 0, taps, lambda ky: seq(*(self._fill(ky, a, b) for a, b in parts)))

    def row(self, row: te.Expr) -> ir.Stmt:
        """Emit copies of the rows behind an output row."""
        return kernel_rows(self.geometry, row, self._copy, self._outside)

    def at(self, pixel: Pixel, _count: int) -> ir.BufferArgument:
        return at(self.buffer, 0, pixel.column * self.geometry.windows.columns.stride, 0)

    def _outside(self, ky: te.Expr) -> ir.Stmt:
        before = self.geometry.windows.columns.before
        return self._fill(ky, before, before + self.geometry.copied)

    def _fill(self, ky: te.Expr, first: int, stop: int) -> ir.Stmt:
        def column(n: te.Expr) -> ir.Stmt:
            return loop(
                "ch", 0, self.geometry.image.channels,
                lambda channel: store(self.buffer, (ky, n, channel), self.border),
            )  # fmt: skip

        return loop("col", first, stop, column)

    def _copy(self, ky: te.Expr, y: te.Expr) -> ir.Stmt:
        size = self.geometry.copied * self.geometry.image.channels
        target = at(self.buffer, ky, self.geometry.windows.columns.before, 0)
        return call(self.move(size), self.x.at(y, 0, 0), target)


def window_rows(
    x: Rows, geometry: Geometry, move: Move, *, reaches_input: bool = True
) -> WindowRows:
    """Return the rows behind an output row: of the input, or bordered ones where these are needed.

    Args:
        x: rows of the image.
        geometry: of the layer.
        move: copies part of a row.
        reaches_input: whether the kernels reach every tap of a window in the input itself.
    """
    if reaches_input and not geometry.copies(x):
        return DirectRows(x, geometry)
    return BorderedRows(x, geometry, move)
