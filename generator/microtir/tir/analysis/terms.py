"""A sum taken apart into terms with integer factors, and put together again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from microtir.dtype import DType
from microtir.tir import arithmetic, build
from microtir.tir.analysis.facts import Facts
from microtir.tir.analysis.interval import Interval
from microtir.tir.ir import Binary, BinaryOp, Expr, IntImm, Unary, UnaryOp


@dataclass(frozen=True, slots=True)
class Terms:
    """The sum `constant + factor * expression + ...`, terms in the order of the text.

    `leaves` counts the terms before equal ones were merged; `constant_is_last` tells whether the
    text already ends with the only constant.
    """

    factors: Mapping[Expr, int]
    constant: int
    leaves: int = 0
    constant_is_last: bool = False

    @property
    def count(self) -> int:
        return len(self.factors)

    def plus(self, constant: int) -> Terms:
        return replace(self, constant=self.constant + constant)

    def with_term(self, e: Expr) -> Terms:
        """Return one more term; none if it is zero."""
        if isinstance(e, IntImm):
            return self.plus(e.value)
        return replace(self, factors={**self.factors, e: self.factors.get(e, 0) + 1})

    def divided(self, divisor: int) -> tuple[Terms, Terms]:
        """Return the part that is a multiple of the divisor, divided, and the rest.

        The constant of the rest lies in [0, divisor).
        """
        whole = {e: f // divisor for e, f in self.factors.items() if f % divisor == 0}
        rest = {e: f for e, f in self.factors.items() if f % divisor}
        return Terms(whole, self.constant // divisor), Terms(rest, self.constant % divisor)


def collect(e: Expr) -> Terms:
    """Return the terms of an integer expression; what is no sum or multiple is one term."""
    factors: dict[Expr, int] = {}
    constant = leaves = constants = 0
    last_is_constant = True
    for term, factor in _leaves(e, 1):
        last_is_constant = isinstance(term, IntImm)
        if isinstance(term, IntImm):
            constant += factor * term.value
            constants += 1
        else:
            factors[term] = factors.get(term, 0) + factor
            leaves += 1
    nonzero = {t: f for t, f in factors.items() if f}
    tidy = constants == 0 or (constants == 1 and last_is_constant)
    return Terms(nonzero, constant, leaves, tidy)


def _leaves(e: Expr, factor: int) -> Iterator[tuple[Expr, int]]:
    match e:
        case Binary(BinaryOp.ADD | BinaryOp.SUB as op, a, b) if e.dtype.is_int:
            yield from _leaves(a, factor)
            yield from _leaves(b, factor if op is BinaryOp.ADD else -factor)
        case Binary(BinaryOp.MUL, a, IntImm(value)) if e.dtype.is_int:
            yield from _leaves(a, factor * value)
        case Unary(UnaryOp.NEG, a) if e.dtype.is_int:
            yield from _leaves(a, -factor)
        case _:
            yield e, factor


def rebuild(terms: Terms, dtype: DType) -> Expr | None:
    """Return the sum as an expression; None if a factor or the constant does not fit the type."""
    numbers = [abs(f) for f in terms.factors.values()] + [abs(terms.constant)]
    if not all(arithmetic.fits(n, dtype) for n in numbers):
        return None
    added = [build.mul(e, f) for e, f in terms.factors.items() if f > 0]
    subtracted = [build.mul(e, -f) for e, f in terms.factors.items() if f < 0]
    constant = terms.constant
    if not added and (constant or not subtracted):
        # 5 - x reads better than -x + 5.
        if not arithmetic.fits(constant, dtype):
            return None
        added, constant = [build.const(constant, dtype)], 0
    if not added and not dtype.is_signed:
        return None
    total = added[0] if added else build.neg(subtracted.pop(0))
    for term in added[1:]:
        total = build.add(total, term)
    for term in subtracted:
        total = build.sub(total, term)
    if constant >= 0:
        return build.add(total, build.const(constant, dtype))
    return build.sub(total, build.const(-constant, dtype))


def cannot_overflow(facts: Facts, e: Expr) -> bool:
    """Return whether the intervals of all partial sums and products of `e` fit its type."""
    if isinstance(e, Unary) and e.op is UnaryOp.NEG:
        exact = -facts.interval(e.a)
        return exact.within(Interval.of_type(e.dtype)) and cannot_overflow(facts, e.a)
    if not isinstance(e, Binary) or e.op not in _EXACT:
        return True
    exact = _EXACT[e.op](facts.interval(e.a), facts.interval(e.b))
    if not exact.within(Interval.of_type(e.dtype)):
        return False
    return cannot_overflow(facts, e.a) and cannot_overflow(facts, e.b)


_EXACT = {
    BinaryOp.ADD: Interval.__add__,
    BinaryOp.SUB: Interval.__sub__,
    BinaryOp.MUL: Interval.__mul__,
}
