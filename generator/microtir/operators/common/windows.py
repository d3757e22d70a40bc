"""Find which taps of a sliding window lie inside an image, and where."""

from __future__ import annotations

from dataclasses import dataclass

from microtir import te
from microtir.graph.ir import Node
from microtir.operators.common.attributes import Padding2D, SlidingWindow
from microtir.operators.common.formula import InputRows
from microtir.operators.common.rows import Extents, RowWindow


@dataclass(frozen=True, slots=True)
class Window:
    """One axis of a sliding window.

    Tap k of output position p reads input position p*stride - before + k*dilation.  Before is less
    than 0 where the first window begins within the input.
    """

    taps: int
    stride: int
    dilation: int
    before: int  # padding in front
    size: int  # extent of the input

    def axis(self, position: te.Expr, name: str) -> te.ReduceAxis:
        """Return the taps that lie inside the input.

        The loop is clipped instead of testing each tap: the inner loop has no branch, and for
        windows that never leave the image the bounds simplify to constants.
        """
        origin = position * self.stride - self.before
        start = te.maximum(_ceil_div(-origin, self.dilation), 0)
        stop = te.minimum(_ceil_div(self.size - origin, self.dilation), self.taps)
        return te.reduce_axis(te.bind(f"{name}_begin", start), te.bind(f"{name}_end", stop), name)

    def position(self, position: te.Expr, tap: te.Expr) -> te.Expr:
        return position * self.stride - self.before + tap * self.dilation

    def reach(self, outputs: int) -> int:
        """Return how many positions the windows of neighbouring outputs span, outside or not."""
        return (outputs - 1) * self.stride + (self.taps - 1) * self.dilation + 1

    def outside(self, outputs: int) -> list[int]:
        """Return how many taps of each window lie outside the input."""
        inside, last = range(self.size), self.taps * self.dilation - self.before
        taps = range(-self.before, last, self.dilation)
        return [sum(n * self.stride + tap not in inside for tap in taps) for n in range(outputs)]

    def clips(self, outputs: int) -> bool:
        """Return whether any window of the first `outputs` positions leaves the input."""
        return self.before > 0 or self.reach(outputs) - self.before > self.size


@dataclass(frozen=True, slots=True)
class Windows:
    """The two windows of an image operator, rows and columns."""

    rows: Window
    columns: Window

    @staticmethod
    def of(
        image: Extents,
        taps: tuple[int, int],
        strides: tuple[int, int],
        dilations: tuple[int, int],
        padding: Padding2D,
    ) -> Windows:
        return Windows(
            Window(taps[0], strides[0], dilations[0], padding.top, image.height),
            Window(taps[1], strides[1], dilations[1], padding.left, image.width),
        )

    @staticmethod
    def of_node(node: Node, window: SlidingWindow) -> Windows:
        """Return the windows of an image operator, with the sizes of its input."""
        image = Extents.of(node.inputs[0].type)
        return Windows.of(image, window.taps, window.strides, window.dilations, window.padding)

    def clip(self, output: Extents) -> bool:
        """Return whether any window leaves the image."""
        return self.rows.clips(output.height) or self.columns.clips(output.width)

    def is_pointwise(self, output: Extents) -> bool:
        """Return whether output pixel n needs input pixel n and nothing else."""
        rows, columns = self.rows, self.columns
        same = (rows.taps, columns.taps, rows.stride, columns.stride) == (1, 1, 1, 1)
        return same and rows.before == columns.before == 0 and not self.clip(output)

    def row_window(self) -> RowWindow:
        """Return the input rows behind one output row."""
        rows = self.rows
        return RowWindow(rows.stride, -rows.before, rows.reach(1))


def _ceil_div(value: te.Expr, divisor: int) -> te.Expr:
    return value if divisor == 1 else (value + (divisor - 1)) // divisor


@dataclass(frozen=True, slots=True)
class WindowTaps:
    """The window of one output element: its two reduction axes and the input it reads."""

    ky: te.ReduceAxis
    kx: te.ReduceAxis
    row: te.Expr  # row of the whole input tensor
    column: te.Expr

    @staticmethod
    def of(
        windows: Windows, x: InputRows, output: Extents, row: te.Expr, column: te.Expr
    ) -> WindowTaps:
        """Return the taps at an output row (counted over all images) and column."""
        image, y = _split_row(row, output)
        ky, kx = windows.rows.axis(y, "ky"), windows.columns.axis(column, "kx")
        first_row = image * x.extents.height if output.images > 1 else 0
        return WindowTaps(
            ky, kx, first_row + windows.rows.position(y, ky), windows.columns.position(column, kx)
        )

    @property
    def inside(self) -> te.Expr:
        """Return how many taps lie inside the image."""
        return (self.ky.stop - self.ky.start) * (self.kx.stop - self.kx.start)


def _split_row(row: te.Expr, output: Extents) -> tuple[te.Expr, te.Expr]:
    if output.images == 1:
        return te.as_expr(0), row
    return row // output.height, row % output.height
