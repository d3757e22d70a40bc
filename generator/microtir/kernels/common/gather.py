"""Copies of windows, gathered from the input: the same tests whatever moves the values.

Values outside the image are the input's zero point, for which the bias accounts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

from microtir import te
from microtir.dtype import DType
from microtir.kernels.common import convolution_geometry, layer
from microtir.kernels.common.statements import let, loop, seq, when
from microtir.tir import ir


def kernel_rows(
    geometry: convolution_geometry.Geometry,
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
        y = row * rows.stride - rows.before + ky * rows.dilation
        return image_row(geometry, y, partial(inside, ky), partial(outside, ky))

    return loop("ky", first, rows.taps, kernel_row)


def image_row(
    geometry: convolution_geometry.Geometry,
    row: te.Expr,
    inside: Callable[[te.Expr], ir.Stmt],
    outside: Callable[[], ir.Stmt],
) -> ir.Stmt:
    """Emit `inside(row)` if a row that windows reach is one of the image, or `outside()`."""
    rows = geometry.windows.rows

    def there(y: te.Expr) -> ir.Stmt:
        if not rows.clips(geometry.output.height):
            return inside(y)
        return when((y >= 0) & (y < rows.size), inside(y), outside())

    return let("y", row, there)


class Gather(ABC):
    """Gathers windows of neighbouring pixels, kernel row by kernel row.

    A kernel row of several pixels is moved at once where none of them leaves the image, if moves
    are for several; else pixel by pixel: run by run inside the image, and tap by tap at its ends.

    Attributes:
        moves_pixels: whether a move may be for several pixels.
        prints_taps: whether the taps of a dilated kernel row are moved one by one, without a loop:
            what a loop reads is all between its first and last column to whoever follows accesses.
    """

    moves_pixels = False
    prints_taps = False

    def __init__(self, x: layer.Rows, geometry: convolution_geometry.Geometry) -> None:
        self.x, self.geometry = x, geometry
        self.zero_point = x.type.quant.zero_point

    # --- moves ----------------------------------------------------------------------------------

    @abstractmethod
    def run(
        self, source: ir.BufferArgument, pixels: int, ky: te.Expr, number: te.Expr, lane: te.Expr
    ) -> ir.Stmt:
        """Emit a run of a kernel row, of so many pixels from place `lane` of the patch on."""

    @abstractmethod
    def tap(self, y: te.Expr, column: te.Expr, ky: te.Expr, kx: te.Expr, lane: te.Expr) -> ir.Stmt:
        """Emit a tap of a pixel, which lies in a column of a row of the input."""

    @abstractmethod
    def outside(self, ky: te.Expr, kx: te.Expr, lane: te.Expr) -> ir.Stmt:
        """Emit a tap of a pixel outside the image."""

    @abstractmethod
    def row_outside(self, ky: te.Expr, pixels: int, lane: te.Expr) -> ir.Stmt:
        """Emit a kernel row of some pixels outside the image."""

    # --- tests ----------------------------------------------------------------------------------

    def windows(self, row: te.Expr, column: te.Expr, pixels: int, lane: te.ExprLike = 0) -> ir.Stmt:
        """Emit the windows of some pixels, from a column on, to `lane` of the patch and behind."""
        columns, first = self.geometry.windows.columns, te.as_expr(lane, DType.INT32)
        left = column * columns.stride - columns.before

        def inside(ky: te.Expr, y: te.Expr) -> ir.Stmt:
            one_by_one = seq(*(
                self._pixel(ky, y, left + n * columns.stride, first + n) for n in range(pixels)
            ))  # fmt: skip
            if pixels == 1 or not self.moves_pixels:
                return one_by_one
            reach = (pixels - 1) * columns.stride
            at_once = self._runs(ky, y, left, pixels, first)
            return when(self.is_inside(left, reach), at_once, one_by_one)

        return kernel_rows(
            self.geometry, row, inside, lambda ky: self.row_outside(ky, pixels, first)
        )

    def is_inside(self, left: te.Expr, reach: int) -> te.Expr:
        """Return whether windows stay between the image's sides, the last `reach` further right."""
        columns = self.geometry.windows.columns
        last = (columns.taps - 1) * columns.dilation + reach
        return (left >= 0) & (left + last < columns.size)

    def _runs(self, ky: te.Expr, y: te.Expr, left: te.Expr, pixels: int, lane: te.Expr) -> ir.Stmt:
        """Emit all runs of a kernel row that lies inside the image."""
        dilation = self.geometry.windows.columns.dilation
        return loop(
            "part", 0, self.geometry.runs_of_row,
            lambda n: self.run(self.x.at(y, left + n * dilation, 0), pixels, ky, n, lane),
        )  # fmt: skip

    def _pixel(self, ky: te.Expr, y: te.Expr, left: te.Expr, lane: te.Expr) -> ir.Stmt:
        """Emit a kernel row of one pixel."""
        columns, clips = self.geometry.windows.columns, self.geometry.clips_columns

        def tap(kx: te.Expr) -> ir.Stmt:
            def there(column: te.Expr) -> ir.Stmt:
                moved = self.tap(y, column, ky, kx, lane)
                is_inside = (column >= 0) & (column < columns.size)
                return when(is_inside, moved, self.outside(ky, kx, lane)) if clips else moved

            return let("x_col", left + kx * columns.dilation, there)

        if self.prints_taps and self.geometry.runs_of_row > 1:
            return seq(*(tap(te.as_expr(kx, DType.INT32)) for kx in range(columns.taps)))
        runs = self._runs(ky, y, left, 1, lane)
        one_by_one = loop("kx", 0, columns.taps, tap)
        return when(self.is_inside(left, 0), runs, one_by_one) if clips else runs
