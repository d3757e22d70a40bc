"""See a tensor as images of rows, which row-wise formulas count in."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.graph.ir import TensorType


@dataclass(frozen=True, slots=True)
class Extents:
    """A tensor as images (N, H, W, C); below rank 4 it is one image of (rows, W, C)."""

    images: int
    height: int
    width: int
    channels: int

    @staticmethod
    def of(type_: TensorType) -> Extents:
        if len(type_.shape) == 4:
            images, height, width, channels = type_.shape
            return Extents(images, height, width, channels)
        channels = type_.channels
        return Extents(1, type_.rows, type_.row_elements // channels, channels)


@dataclass(frozen=True, slots=True)
class RowWindow:
    """Input rows that output row y needs: [y*stride + offset, y*stride + offset + extent).

    Rows outside the image are not read. Rows of different images (N > 1) never mix.
    """

    stride: int = 1
    offset: int = 0
    extent: int = 1

    def first(self, y: int, height: int) -> int:
        """Return the first row of an input of `height` rows that output row y reads."""
        return min(max(y * self.stride + self.offset, 0), height)

    def needed(self, rows: int, height: int) -> int:
        """Count the rows of an input of `height` rows that the first `rows` output rows need."""
        if rows == 0:
            return 0
        return min(max((rows - 1) * self.stride + self.offset + self.extent, 0), height)

    @property
    def is_same_row(self) -> bool:
        """Return whether output row y needs input row y and no other."""
        return self == RowWindow()
