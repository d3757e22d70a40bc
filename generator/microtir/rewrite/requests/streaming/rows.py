"""Runs of rows along time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from microtir.operators.common.rows import RowWindow


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows [first, stop) of a tensor; none where both are equal."""

    first: int
    stop: int

    @property
    def count(self) -> int:
        return self.stop - self.first

    def holds(self, other: Rows) -> bool:
        """Return whether all of another run are among these."""
        return self.first <= other.first and other.stop <= self.stop

    def moved(self, by: int) -> Rows:
        return Rows(self.first + by, self.stop + by)

    def common(self, other: Rows) -> Rows:
        first = max(self.first, other.first)
        return Rows(first, max(min(self.stop, other.stop), first))

    def __str__(self) -> str:
        one = self.stop - self.first == 1
        return f"row {self.first}" if one else f"rows {self.first} to {self.stop - 1}"


def runs(rows: Iterable[int]) -> tuple[Rows, ...]:
    """Return rows as runs without gaps, in ascending order."""
    ranges: list[Rows] = []
    for row in sorted(rows):
        if ranges and ranges[-1].stop == row:
            ranges[-1] = Rows(ranges[-1].first, row + 1)
        else:
            ranges.append(Rows(row, row + 1))
    return tuple(ranges)


def reach(window: RowWindow, output: Rows) -> Rows:
    """Return the rows of an input that a run of output rows reads, padding among them."""
    first = output.first * window.stride + window.offset
    return Rows(first, (output.stop - 1) * window.stride + window.offset + window.extent)


def within(window: RowWindow, available: Rows, count: int) -> Rows:
    """Return the rows of an output of `count` rows that read nothing but rows `given`."""
    first = -((window.offset - available.first) // window.stride)
    stop = (available.stop - window.extent - window.offset) // window.stride + 1
    return Rows(first, max(stop, first)).common(Rows(0, count))
