"""The part that depthwise kernels of all CPUs share: the layers they take, taps of windows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common import convolution_geometry, kernel, refusals, statements
from microtir.operators.common.windows import Windows
from microtir.operators.convolution.definition import DepthwiseConv2D
from microtir.plan.ir import Refusal
from microtir.tir import ir


class DepthwiseKernel(kernel.Kernel):
    """A kernel of depthwise convolutions: one image, most take one output per input channel.

    Attributes:
        dtype: of inputs and outputs.
        takes_multiplier: whether it takes several outputs of a channel, too.
    """

    operators = (DepthwiseConv2D,)
    dtype = DType.INT8
    takes_multiplier = False

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against types, sizes, and factors or weights, in this order."""
        reason = refusals.type_refusal(node, self.dtype)
        reason = reason or refusals.channelwise_refusal(node, multiplies=self.takes_multiplier)
        reason = reason or self.reject_sizes(node, convolution_geometry.Geometry.of(node))
        if reason is not None:
            return reason
        return None if self.has_form(node) else Refusal.FORM

    @abstractmethod
    def reject_sizes(self, node: Node, geometry: convolution_geometry.Geometry) -> Refusal | None:
        """Return what speaks against the windows and channels of a node."""

    @abstractmethod
    def has_form(self, node: Node) -> bool:
        """Return whether factors and weights are such as its micro-kernels take."""


@dataclass(frozen=True, slots=True)
class Taps:
    """A window in memory where neighbouring columns are `channels` elements apart."""

    rows: int
    columns: int
    row_step: int  # elements between its rows
    column_step: int  # columns between its taps
    stride: int  # columns between neighbouring windows
    channels: int

    @staticmethod
    def of(windows: Windows, channels: int, row_step: int) -> Taps:
        """Return those of a convolution, with so many elements between the rows of a window."""
        rows, columns = windows.rows, windows.columns
        return Taps(rows.taps, columns.taps, row_step, columns.dilation, columns.stride, channels)

    @property
    def count(self) -> int:
        return self.rows * self.columns

    def offset(self, row: int, column: int, pixel: int) -> int:
        """Return the elements from the first tap of pixel 0 to a tap of a pixel."""
        return row * self.row_step + self.column(column, pixel) * self.channels

    def column(self, column: int, pixel: int) -> int:
        return pixel * self.stride + column * self.column_step

    def each(self, tap: Callable[[te.Expr, te.Expr], ir.Stmt]) -> ir.Stmt:
        """Emit `tap(row, column)` for all taps, row by row."""
        return statements.loop(
            "row", 0, self.rows,
            lambda row: statements.loop("col", 0, self.columns, lambda column: tap(row, column)),
        )  # fmt: skip

    def reach(self, pixels: int) -> int:
        """Return the elements from the first to behind the last one of `pixels` windows."""
        return self.offset(self.rows - 1, self.columns - 1, pixels - 1) + self.channels
