"""Writes numbers as people read them: bytes of a memory, times, estimates."""

from __future__ import annotations


def size(count: int) -> str:
    """Return bytes of a memory in the largest unit that they are a multiple of."""
    for unit, power in (("M", 20), ("K", 10)):
        if count % (1 << power) == 0:
            return f"{count >> power} {unit}"
    return f"{count} B"


def duration(seconds: float) -> str:
    """Return a time with three digits, in the unit that people would take."""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def three_digits(count: int) -> str:
    """Round an estimate: more digits would promise too much."""
    unit = 10 ** max(len(str(count)) - 3, 0)
    return f"{round(count / unit) * unit:,}"
