"""Images with a border: the input rows of a call, copied beside each other into scratch.

Windows that leave the image read the border, which holds the input's zero point, so that no
kernel tests for it.  Copying costs a few percent of what the kernels take.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

from microtir import te
from microtir.graph.ir import Node
from microtir.kernels.common.layer import Rows
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.statements import at, let, load, loop, seq, store, when
from microtir.kernels.x86_avx2.micro_kernel import describe
from microtir.operators.common.rows import Extents
from microtir.operators.common.windows import Window, Windows
from microtir.operators.convolution.formula import windows_of
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType

_Image = TypeVar("_Image", bound="WindowedImage")

SLACK = 16  # bytes behind the last row that a kernel may read


@dataclass(frozen=True, slots=True)
class WindowedImage:
    """An image, and what windows over it give."""

    windows: Windows
    image: Extents
    output: Extents

    @classmethod
    def of(cls: type[_Image], node: Node) -> _Image:
        """Return what a convolution reads and writes."""
        return cls(windows_of(node), Extents.of(node.inputs[0].type), Extents.of(node.output.type))

    @property
    def padded(self) -> PaddedImage:
        """Return the same with a border."""
        return PaddedImage(self.windows, self.image, self.output)


@dataclass(frozen=True, slots=True)
class PaddedImage:
    """The part of an image that windows over `output` read, with its border."""

    windows: Windows
    image: Extents
    output: Extents

    @property
    def width(self) -> int:
        """Return the pixels of a row."""
        return reach(self.windows.columns, self.output.width)

    @property
    def row_elements(self) -> int:
        return self.width * self.image.channels

    def bytes_behind(self, rows: int) -> int:
        """Return scratch for what so many output rows read."""
        return reach(self.windows.rows, rows) * self.row_elements + SLACK

    @property
    def bytes(self) -> int:
        """Return scratch for the rows of a whole call."""
        return self.bytes_behind(self.output.height)

    def copy_cost(self, calls: int) -> int:
        """Return the instructions of filling the scratch of so many calls."""
        rows = reach(self.windows.rows, -(-self.output.height // calls))
        return calls * rows * (self.row_elements // 32 + 20)

    def buffer(self, rows: int | None = None) -> ir.Buffer:
        """Return the scratch of so many output rows, or of all.

        It is one row, so that whoever follows rows of buffers sees one span of bytes.
        """
        size = self.bytes if rows is None else self.bytes_behind(rows)
        return ir.Buffer("scratch", (1, size), DType.INT8)

    def fill(
        self, scratch: ir.Buffer, x: Rows, zero_point: int, y0: te.Expr, y1: te.Expr
    ) -> ir.Stmt:
        """Copy what the output rows [y0, y1) read to the beginning of `scratch`."""
        rows = self.windows.rows
        count = te.maximum((y1 - y0 - 1) * rows.stride + reach(rows, 1), 0)
        return self._fill(scratch, x, zero_point, y0, count)

    def fill_window(self, scratch: ir.Buffer, x: Rows, zero_point: int, y: te.Expr) -> ir.Stmt:
        """Copy what output row y reads to the beginning of `scratch`."""
        return self._fill(scratch, x, zero_point, y, reach(self.windows.rows, 1))

    def _fill(
        self, scratch: ir.Buffer, x: Rows, zero_point: int, y0: te.Expr, count: te.ExprLike
    ) -> ir.Stmt:
        rows = self.windows.rows

        def row(number: te.Expr) -> ir.Stmt:
            begin = number * self.row_elements

            def filled(first: int, stop: int) -> ir.Stmt:
                if first >= stop:
                    return seq()
                return loop(
                    "i", first, stop, lambda i: store(scratch, (0, begin + i), zero_point)
                )  # fmt: skip

            def copied(y: te.Expr) -> ir.Stmt:
                there = (y >= 0) & (y < rows.size)
                return when(there, self._copied(scratch, x, begin, y, filled),
                            filled(0, self.row_elements))  # fmt: skip

            return let("y_in", y0 * rows.stride - rows.before + number, copied)

        return loop("number", 0, count, row)

    def _copied(
        self, scratch: ir.Buffer, x: Rows, begin: te.Expr, y: te.Expr, filled: _Fill
    ) -> ir.Stmt:
        columns, channels = self.windows.columns, self.image.channels
        left = columns.before * channels
        count = min(columns.size, self.width - columns.before) * channels
        copy = call(_copy(count), x.at(y, 0, 0), at(scratch, 0, begin + left))
        return seq(filled(0, left), copy, filled(left + count, self.row_elements))


class _Fill(Protocol):
    """Stores the zero point to [first, stop) of the current row."""

    def __call__(self, first: int, stop: int) -> ir.Stmt: ...


@made_once
def _copy(count: int) -> KernelDescription:
    """Copy `count` values; parameters: from, to."""
    x, y = ir.Buffer("x", (count,), DType.INT8), ir.Buffer("y", (count,), DType.INT8)
    return describe(
        f"copy_{count}",
        f"Copies {count} values",
        (x, y),
        y,
        loop("i", 0, count, lambda i: store(y, (i,), load(x, i))),
        "kernels/vector/copy.j2",
        {"part": "copy", "count": str(count)},
        stack_bytes=0,
    )


def reach(window: Window, outputs: int) -> int:
    """Return input positions that the first `outputs` positions of the output span."""
    return (outputs - 1) * window.stride + (window.taps - 1) * window.dilation + 1
