"""Adds fractions in their order: since Python 3.12 `sum` corrects the error of rounding."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add


def sum_in_order(values: Iterable[float]) -> float:
    """Return a sum that is rounded after each summand, the same in every version of Python."""
    return reduce(add, values, 0.0)
