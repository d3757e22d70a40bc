"""Closed integer intervals and their arithmetic.

Every integer type is finite, so every interval is; a result that leaves the type is an error of
the program, and callers clamp to the type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

from microtir.dtype import DType


@dataclass(frozen=True, slots=True)
class Interval:
    """All integers `low .. high`, both included; never empty."""

    low: int
    high: int

    @staticmethod
    def of_type(dtype: DType) -> Interval:
        """Return every value of an integer type or of BOOL."""
        return _whole(dtype)

    @staticmethod
    def hull(values: Iterable[int]) -> Interval:
        """Return the smallest interval that holds all values; there is at least one."""
        known = tuple(values)
        return Interval(min(known), max(known))

    @property
    def is_point(self) -> bool:
        return self.low == self.high

    def __contains__(self, value: int) -> bool:
        return self.low <= value <= self.high

    def within(self, other: Interval) -> bool:
        return other.low <= self.low and self.high <= other.high

    def union(self, other: Interval) -> Interval:
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def intersect(self, other: Interval) -> Interval | None:
        """Return the common values, or None if there are none."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Interval(low, high) if low <= high else None

    def clamp(self, dtype: DType) -> Interval:
        """Return the values that fit the type; the whole type if none does."""
        whole = Interval.of_type(dtype)
        return self.intersect(whole) or whole

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high)

    def __sub__(self, other: Interval) -> Interval:
        return Interval(self.low - other.high, self.high - other.low)

    def __mul__(self, other: Interval) -> Interval:
        return corners(int.__mul__, self, other)

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)


def corners(function: Callable[[int, int], int], a: Interval, b: Interval) -> Interval:
    """Return the exact bounds of a function that is monotone in each of its two arguments."""
    return Interval.hull(function(x, y) for x in (a.low, a.high) for y in (b.low, b.high))


@cache
def _whole(dtype: DType) -> Interval:
    return Interval(dtype.min, dtype.max)
