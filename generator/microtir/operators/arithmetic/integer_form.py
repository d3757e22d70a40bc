"""Find integers that give what float32 gives for a sum or product of two stored elements.

DequantizeLinear, an operator and QuantizeLinear, computed step by step, are a table of 256 x 256
results.  An integer form, (first * x + second * y + product * x * y + offset) >> bits, is compared
with all of it: what is found is equal for every pair, and nothing is found where float32 rounds
in a way that no form has, as ties to even do where there are many.

For given factors those offsets that fit are an interval, whose width is a concave function of the
factors.  Those nearest to the real ones mostly do; else others are tried, uphill.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from microtir.operators.common.arithmetic import RAISED
from microtir.operators.common.fixed_point import Ints
from microtir.support.sums import sum_in_order

_INT32_BITS = 31
_KEPT = 3000  # pairs nearest to a step, which decide
_FEWER_BITS = 4  # that are tried
_STEPS = 18  # the first change of a factor is its 2^-18th part


@dataclass(frozen=True, slots=True)
class IntegerForm:
    """(first * x + second * y + product * x * y + offset) >> bits, of centred elements.

    `is_wide` says that it takes 64 bits.
    """

    first: int
    second: int
    product: int
    offset: int
    bits: int
    is_wide: bool

    def moved(self, steps: tuple[int, int, int]) -> IntegerForm:
        """Return the form with other factors."""
        first, second, product = steps
        return replace(
            self,
            first=self.first + first,
            second=self.second + second,
            product=self.product + product,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The results of all pairs of stored elements.

    Attributes:
        zero_points: of both elements.
        factors: real ones: of x, of y, of their product.
        results: (256, 256), by both elements.
        low: the least result that is stored.
        high: the largest.
    """

    zero_points: tuple[int, int]
    factors: tuple[float, float, float]
    results: Ints
    low: int
    high: int

    def form(self) -> IntegerForm | None:
        """Return a form that gives all results, in 32 bits if there is one, or None."""
        pairs, most = _Pairs.of(self), self._most_bits
        for bits in range(most, most - _FEWER_BITS, -1):
            form = self._form(pairs, bits, is_wide=False)
            if form is not None and self._reach(form) < 1 << _INT32_BITS:
                return form
        largest = max(map(abs, self.factors))
        bits = min(_INT32_BITS - 1 - math.frexp(largest)[1], 2 * _INT32_BITS - 20)
        return self._form(pairs, bits, is_wide=True)

    def _form(self, pairs: _Pairs, bits: int, *, is_wide: bool) -> IntegerForm | None:
        first, second, product = (round(math.ldexp(f, bits)) for f in self.factors)
        nearest = IntegerForm(first, second, product, 0, bits, is_wide)
        best = pairs.nearest_steps(nearest).best(nearest)
        if best is None:
            return None
        low, high = pairs.offsets(best)
        return replace(best, offset=(low + high) // 2) if low < high else None

    @property
    def _most_bits(self) -> int:
        """Return the most bits with which the terms of 32 bits may have room."""
        terms = zip(map(abs, self.factors), self._largest, strict=True)
        return _INT32_BITS - 1 - math.frexp(max(sum_in_order(map(math.prod, terms)) / 2, 1))[1]

    @property
    def _largest(self) -> tuple[int, int, int]:
        first, second = (max(127 - z, z + 128) for z in self.zero_points)
        return first, second, first * second

    def _reach(self, form: IntegerForm) -> int:
        """Return the largest magnitude of a result, raised: those of the ends, for it is linear."""
        start = form.offset + (RAISED << form.bits)
        first, second = ((-128 - z, 127 - z) for z in self.zero_points)
        return max(
            abs(form.first * x + form.second * y + form.product * x * y + start)
            for x, y in itertools.product(first, second)
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Pairs of centred elements that reach a result, and such that do not reach it."""

    reached: Ints  # columns: a result, x, y
    missed: Ints

    @staticmethod
    def of(table: Table) -> _Pairs:
        stored = np.arange(-128, 128)
        x, y = np.meshgrid(*(stored - z for z in table.zero_points), indexing="ij")
        rows = np.stack([table.results.ravel(), x.ravel(), y.ravel()], axis=1)
        above = rows[rows[:, 0] < table.high] + np.array([1, 0, 0])
        return _Pairs(rows[rows[:, 0] > table.low], above)

    def offsets(self, form: IntegerForm) -> tuple[int, int]:
        """Return the least offset that fits the factors of a form, and the first too large."""
        low, high = _needed(self.reached, form), _needed(self.missed, form)
        return int(low.max(initial=-(1 << 62))), int(high.min(initial=1 << 62))

    def nearest_steps(self, form: IntegerForm) -> _Pairs:
        """Return the pairs that decide for forms like this one."""
        low, high = _needed(self.reached, form), _needed(self.missed, form)
        return _Pairs(self.reached[np.argsort(-low)[:_KEPT]], self.missed[np.argsort(high)[:_KEPT]])

    def best(self, form: IntegerForm) -> IntegerForm | None:
        """Return a form near a given one that offsets fit; None if none is found."""
        width = self._width(form)
        for size in _sizes(form):
            while width <= 0:
                moved = [form.moved(steps) for steps in _directions(form, size)]
                wider = max(moved, key=self._width)
                if self._width(wider) <= width:
                    break
                form, width = wider, self._width(wider)
        return form if width > 0 else None

    def _width(self, form: IntegerForm) -> int:
        low, high = self.offsets(form)
        return high - low


def _needed(pairs: Ints, form: IntegerForm) -> Ints:
    """Return the offset by which each pair reaches its result."""
    result, x, y = pairs.T
    terms = form.first * x + form.second * y + form.product * x * y
    needed: Ints = (result << form.bits) - terms
    return needed


def _sizes(form: IntegerForm) -> Iterator[int]:
    largest = max(abs(form.first), abs(form.second), abs(form.product))
    for bit in range(max(largest.bit_length() - _STEPS, 2), -1, -1):
        yield 1 << bit


def _directions(form: IntegerForm, size: int) -> Iterator[tuple[int, int, int]]:
    """Yield changes of the factors that a form has."""
    of_each = [
        (-size, 0, size) if factor else (0,) for factor in (form.first, form.second, form.product)
    ]
    yield from itertools.product(of_each[0], of_each[1], of_each[2])
