"""Windows of depthwise convolutions as their micro-kernels walk them: taps at byte distances."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.operators.common.windows import Windows


@dataclass(frozen=True, slots=True)
class Taps:
    """A window in memory where neighbouring columns are `channels` bytes apart."""

    rows: int
    columns: int
    row_step: int  # bytes between its rows
    column_step: int  # columns between its taps
    stride: int  # columns between neighbouring windows
    channels: int

    @staticmethod
    def of(windows: Windows, channels: int, row_step: int) -> Taps:
        """Return those of a convolution, with so many bytes between the rows of a window."""
        rows, columns = windows.rows, windows.columns
        return Taps(rows.taps, columns.taps, row_step, columns.dilation, columns.stride, channels)

    @property
    def count(self) -> int:
        return self.rows * self.columns

    def offset(self, row: int, column: int, pixel: int) -> int:
        """Return the bytes from the first tap of pixel 0 to a tap of a pixel."""
        return row * self.row_step + self.column(column, pixel) * self.channels

    def column(self, column: int, pixel: int) -> int:
        return pixel * self.stride + column * self.column_step

    def reach(self, pixels: int) -> int:
        """Return the bytes from the first to behind the last byte of `pixels` windows."""
        return self.offset(self.rows - 1, self.columns - 1, pixels - 1) + self.channels
