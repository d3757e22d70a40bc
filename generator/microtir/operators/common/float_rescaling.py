"""Integers that give, for every sum that can occur, what a rescaling in floats gives.

A sum times a float, rounded to the nearest integer, never falls where the sum rises, whatever is
rounded on the way.  So a table of steps says all of it: the least sum at which each stored value is
reached.  floor((slope * sum + offset) / 2^bits) never falls either: both are equal on a range of
sums if slope and offset put every step between the same two sums.  Each step is two linear
inequalities; those offsets that fulfil all of them for a slope are an interval, or none.

Where exact ties follow each other there is none: of three in a row the middle one is rounded the
other way, to its even side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from microtir.operators.common import attributes, linear
from microtir.operators.common.fixed_point import Ints

_LARGEST = 1 << 30  # of the sums
LARGEST_SHIFT = 20  # so that inequalities fit 64 bits
_UPPER = 32  # bits below the upper word of a product
_SLOPES = 1 << 12  # a slope differs by less than this part from the factor


@dataclass(frozen=True, slots=True)
class StoredSums:
    """A factor, the sums that are multiplied by it, and the range that is stored."""

    factor: float
    lowest: int
    highest: int
    zero_point: int
    low: int
    high: int
    rescaling: attributes.Rescaling = attributes.Rescaling.FLOAT32

    @property
    def constant(self) -> int | None:
        """Return what all sums are stored as, if that is one value."""
        first, last = self.ends
        return first if first == last else None

    @property
    def ends(self) -> tuple[int, int]:
        """Return what the least and the largest sum are stored as."""
        first, last = self.stored(np.array([self.lowest, self.highest])).tolist()
        return int(first), int(last)

    def stored(self, totals: Ints) -> Ints:
        """Return what sums are stored as, as the reference computes it."""
        scaled = linear.times_factors(totals, np.array(self.factor), self.rescaling)
        clipped: Ints = np.clip(scaled + self.zero_point, self.low, self.high)
        return clipped

    def first_sums(self, values: Ints) -> Ints:
        """Return the least sum at which each stored value is reached: all lie in the range."""
        middle = (values - self.zero_point - 0.5) / self.factor
        reach = 2 + np.abs(middle) * 2.0**-20  # more than two roundings to float32 move it
        below = np.maximum(np.floor(middle - reach).astype(np.int64), self.lowest - 1)
        reached = np.minimum(np.ceil(middle + reach).astype(np.int64), self.highest)
        while (reached - below > 1).any():
            between = (below + reached) // 2
            is_there = self.stored(between) >= values
            below, reached = (
                np.where(is_there, below, between),
                np.where(is_there, between, reached),
            )
        first: Ints = reached
        return first


@dataclass(frozen=True, slots=True, eq=False)
class _Steps:
    """Sums at which a stored value is reached, or not yet."""

    reached: tuple[Ints, Ints]  # values, and sums that are stored as these or larger ones
    missed: tuple[Ints, Ints]  # values, and sums that are stored as smaller ones

    @staticmethod
    def of(sums: StoredSums) -> _Steps:
        first, last = sums.ends
        values = np.arange(first + 1, last + 1)
        least = sums.first_sums(values)
        start, end = np.array([[first], [sums.lowest]]), np.array([[last + 1], [sums.highest]])
        start, end = start[:, : first > sums.low], end[:, : last < sums.high]
        return _Steps(
            (np.append(values, start[0]), np.append(least, start[1])),
            (np.append(values, end[0]), np.append(least - 1, end[1])),
        )

    def offsets(self, slope: int, bits: int) -> tuple[int, int]:
        """Return the least legal offset of a slope and the first that is too large."""
        low = (self.reached[0] << bits) - slope * self.reached[1]
        high = (self.missed[0] << bits) - slope * self.missed[1]
        return int(low.max()), int(high.min())

    def best(self, slope: int, bits: int) -> int:
        """Return the slope near a given one with the most offsets, which is a concave function."""
        low, high = slope - slope // _SLOPES - 1, slope + slope // _SLOPES + 1

        def width(of: int) -> int:
            first, end = self.offsets(of, bits)
            return end - first

        while high - low > 2:
            third = (high - low) // 3
            if width(low + third) < width(high - third):
                low += third
            else:
                high -= third
        return max(range(low, high + 1), key=width)


def shift_of(factor: float) -> int:
    """Return the largest shift of the upper word that leaves a multiplier 31 bits."""
    return min(-math.frexp(factor)[1], LARGEST_SHIFT)


@dataclass(frozen=True, slots=True)
class Line:
    """floor((2 * multiplier * sum + offset) / 2^(32 + shift)) for offsets in [first, end)."""

    multiplier: int
    first: int
    end: int


def lines_of(sums: StoredSums, shift: int) -> Iterator[Line]:
    """Yield lines that meet all steps: of the nearest slope, then of that with the most offsets.

    Args:
        sums: that are stored as more than one value.
        shift: at most `shift_of` the factor.
    """
    if shift < 0 or max(-sums.lowest, sums.highest) >= _LARGEST:
        return
    steps, bits = _Steps.of(sums), _UPPER + shift
    nearest = 2 * round(math.ldexp(sums.factor, 31 + shift))
    for slope in (nearest, None):
        multiplier = (steps.best(nearest, bits) if slope is None else slope) // 2
        line = Line(multiplier, *steps.offsets(2 * multiplier, bits))
        if line.first < line.end and multiplier < 1 << 31:
            yield line
