"""Runs of elements that a pixel of a convolution reads in place, and turns over its channels."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Runs:
    """The elements that a pixel of a convolution reads: `rows` times `parts` runs of `length` each.

    `row_step` and `part_step` are elements between the first ones of neighbouring runs,
    `pixel_step` those between neighbouring pixels, `step` those between elements of a run.
    """

    rows: int
    parts: int
    length: int
    row_step: int
    part_step: int
    pixel_step: int
    step: int = 1

    def reach(self, pixels: int) -> int:
        """Return elements from the first to behind the last one of `pixels` pixels."""
        last = (self.rows - 1) * self.row_step + (self.parts - 1) * self.part_step
        return last + (pixels - 1) * self.pixel_step + (self.length - 1) * self.step + 1

    @property
    def taps(self) -> int:
        """Return products of one output."""
        return self.rows * self.parts * self.length

    @property
    def name(self) -> str:
        steps = f"{self.row_step}_{self.part_step}_{self.pixel_step}"
        every = f"_every{self.step}" * (self.step > 1)
        return f"{self.rows}x{self.parts}x{self.length}_{steps}{every}"


@dataclass(frozen=True, slots=True)
class Taps:
    """A depthwise window: `columns` of each row are `column_step` elements apart, and so on."""

    rows: int
    columns: int
    row_step: int
    column_step: int
    pixel_step: int

    def reach(self, pixels: int, channels: int) -> int:
        """Return elements from the first to behind the last one of `pixels` pixels."""
        last = (self.rows - 1) * self.row_step + (self.columns - 1) * self.column_step
        return last + (pixels - 1) * self.pixel_step + channels

    @property
    def count(self) -> int:
        return self.rows * self.columns

    @property
    def name(self) -> str:
        steps = f"{self.row_step}_{self.column_step}_{self.pixel_step}"
        return f"{self.rows}x{self.columns}_{steps}"

    def loads(self, pixels: int) -> int:
        """Return elements of a row that the windows of neighbouring pixels share."""
        return len({
            pixel * self.pixel_step + column * self.column_step
            for pixel in range(pixels)
            for column in range(self.columns)
        })  # fmt: skip


def turns_of(channels: int, at_once: int) -> list[int]:
    """Return the first channel of each turn of `together` channels; the last turn may overlap."""
    return [min(first, channels - at_once) for first in range(0, channels, at_once)]
