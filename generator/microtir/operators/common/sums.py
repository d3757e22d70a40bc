"""Bound integer sums from the bounds of what is added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import SumRange
from microtir.operators.common.fixed_point import Ints

Interval: TypeAlias = tuple[Ints, Ints]
"""Lowest and highest stored value, one each per index of the last axis, or one for all."""


def any_value(dtype: DType) -> Interval:
    """Return all values of an integer type."""
    return np.array([dtype.min], np.int64), np.array([dtype.max], np.int64)


def joined(*ranges: SumRange) -> SumRange:
    """Return the least range that holds all of them."""
    return SumRange(min(r.low for r in ranges), max(r.high for r in ranges))


def counted(count: int, inputs: Sequence[Interval], zero_point: int) -> SumRange:
    """Bound the sum of `count` elements.

    The zero point is subtracted from each element, or `count` times from the sum; half the count
    is added for rounding.
    """
    low, high = int(inputs[0][0].min()), int(inputs[0][1].max())
    ends = [count * value for value in (low, high, low - zero_point, high - zero_point)]
    ends += [-count * zero_point, 0]
    return SumRange(min(ends) - count // 2, max(ends) + count // 2)
