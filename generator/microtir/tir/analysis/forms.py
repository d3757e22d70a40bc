"""Turns integer expressions into linear forms, and conditions into facts about them.

Whatever is not linear becomes an unknown of its own: a floor division is an unknown q with its
defining inequalities d*q <= e <= d*q + d - 1, a minimum an unknown that is no higher than either
operand and no lower than one of them.  A load from memory that can change is a new unknown each
time it is met.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from microtir.dtype import DType
from microtir.tir import ir
from microtir.tir.analysis.affine import Linear
from microtir.tir.analysis.bounds import Bounds
from microtir.tir.analysis.interval import Interval


@dataclass(frozen=True, slots=True)
class Either:
    """A disjunction of alternatives; each is a conjunction."""

    alternatives: tuple[tuple[Fact, ...], ...]


Fact: TypeAlias = "Linear | Either"  # a Linear is known not to be negative

IMPOSSIBLE = Linear((), -1)


def equal(a: Linear, b: Linear) -> tuple[Fact, ...]:
    """Return the two inequalities that make an equation."""
    return (a - b, b - a)


class Forms:
    """Linear forms over numbered unknowns, with what is known about each of them."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.definitions: list[tuple[Fact, ...]] = []  # by unknown; true wherever it is used
        self._sources: list[ir.Var | Interval] = []  # by unknown; where its interval comes from
        # Intervals of unknowns may rest on a condition: what is made under one is forgotten
        # when it is left.
        self._memo: list[dict[object, int]] = [{}]
        self._lets: dict[ir.Var, Linear] = {}
        self._conditions: dict[ir.Var, ir.Expr] = {}

    @contextmanager
    def layer(self) -> Iterator[None]:
        """Open a scope: unknowns made inside are not met again outside."""
        self._memo.append({})
        try:
            yield
        finally:
            self._memo.pop()

    # --- unknowns ---

    def _find(self, key: object) -> int | None:
        for layer in reversed(self._memo):
            if key in layer:
                return layer[key]
        return None

    def _new(self, source: ir.Var | Interval, facts: tuple[Fact, ...], key: object = None) -> int:
        number = len(self.definitions)
        self.definitions.append(facts)
        self._sources.append(source)
        if key is not None:
            self._memo[-1][key] = number
        return number

    def _bounded(self, interval: Interval, key: object = None) -> Linear:
        """Make an unknown of which nothing but its interval is known."""
        number = self._new(interval, (), key)
        self.definitions[number] = _limits(number, interval)
        return Linear.unknown(number)

    def define_loop(self, var: ir.Var, start: Linear, stop: Linear) -> tuple[Fact, ...]:
        """Make the unknown of a loop variable; returns start <= var < stop."""
        number = self._new(var, (), var)
        unknown = Linear.unknown(number)
        self.definitions[number] = (unknown - start, stop.plus(-1) - unknown)
        return self.definitions[number]

    def define_let(self, var: ir.Var, value: ir.Expr) -> None:
        """Make a Let-bound Var stand for its value."""
        if value.dtype is DType.BOOL:
            self._conditions[var] = value
        elif not value.dtype.is_float:
            form = self.of(value)
            self._lets[var] = form
            if len(form.terms) == 1 and form == Linear.unknown(form.terms[0][0]):
                number = form.terms[0][0]
                if isinstance(self._sources[number], Interval):
                    self._sources[number] = var  # so that a condition can narrow it

    def variable(self, unknown: int) -> ir.Var | None:
        source = self._sources[unknown]
        return source if isinstance(source, ir.Var) else None

    def interval(self, form: Linear) -> Interval:
        low = high = form.constant
        for unknown, coefficient in form.terms:
            source = self._sources[unknown]
            inner = source if isinstance(source, Interval) else self.bounds.of(source)
            a, b = coefficient * inner.low, coefficient * inner.high
            low, high = low + min(a, b), high + max(a, b)
        return Interval(low, high)

    # --- expressions ---

    def of(self, e: ir.Expr) -> Linear:
        match e:
            case ir.IntImm(value):
                return Linear((), value)
            case ir.Var():
                return self._variable(e)
            case ir.Binary():
                return self._binary(e)
            case ir.Unary(ir.UnaryOp.NEG, a):
                return self.of(a).scaled(-1)
            case ir.Cast(_, value) if value.dtype.is_int:
                return self.of(value)
            case ir.Cast(_, value) if value.dtype is DType.BOOL:
                return self._choice(e, value, Linear((), 1), Linear((), 0))
            case ir.Select(condition, then, otherwise):
                return self._choice(e, condition, self.of(then), self.of(otherwise))
            case ir.Load(buffer, indices) if buffer.scope is ir.Scope.CONSTANT:
                key = (buffer, tuple(self.of(i) for i in indices))
                known = self._find(key)
                if known is not None:
                    return Linear.unknown(known)
                return self._bounded(self.bounds.of(e), key)
            case _:
                return self._bounded(self.bounds.of(e))

    def _variable(self, var: ir.Var) -> Linear:
        if var in self._lets:
            return self._lets[var]
        number = self._find(var)
        if number is None:
            # A parameter: its range does not rest on any condition, so it is known everywhere.
            number = len(self.definitions)
            self.definitions.append(_limits(number, Bounds().of(var)))
            self._sources.append(var)
            self._memo[0][var] = number
        return Linear.unknown(number)

    def _binary(self, e: ir.Binary) -> Linear:
        if e.a.dtype.is_float or e.dtype is DType.BOOL:
            return self._bounded(self.bounds.of(e))
        a, b, op = self.of(e.a), self.of(e.b), e.op
        if op is ir.BinaryOp.ADD:
            return a + b
        if op is ir.BinaryOp.SUB:
            return a - b
        if op in (ir.BinaryOp.MIN, ir.BinaryOp.MAX):
            return self._extremum(op, a, b)
        if op is ir.BinaryOp.MUL and (a.is_constant or b.is_constant):
            return a.scaled(b.constant) if b.is_constant else b.scaled(a.constant)
        if b.is_constant and b.constant >= 0:
            known = self._by_constant(op, a, b.constant)
            if known is not None:
                return known
        return self._bounded(self.bounds.of(e))

    def _by_constant(self, op: ir.BinaryOp, a: Linear, b: int) -> Linear | None:
        if op is ir.BinaryOp.SHIFT_LEFT and b < 64:
            return a.scaled(1 << b)
        if op is ir.BinaryOp.SHIFT_RIGHT and b < 64:
            return self.quotient(a, 1 << b)
        if b > 0 and op is ir.BinaryOp.FLOORDIV:
            return self.quotient(a, b)
        if b > 0 and op is ir.BinaryOp.FLOORMOD:
            return a - self.quotient(a, b).scaled(b)
        if b > 0 and op is ir.BinaryOp.TRUNCDIV and self.interval(a).low >= 0:
            return self.quotient(a, b)
        return None

    def quotient(self, a: Linear, divisor: int) -> Linear:
        """Return the form of floordiv(a, divisor); what the divisor divides is taken out."""
        whole = Linear(
            tuple((x, c // divisor) for x, c in a.terms if c % divisor == 0), a.constant // divisor
        )
        rest = a - whole.scaled(divisor)
        interval = self.interval(rest)
        if interval.low // divisor == interval.high // divisor:
            return whole.plus(interval.low // divisor)
        key = ("floordiv", rest, divisor)
        number = self._find(key)
        if number is None:
            span = Interval(interval.low // divisor, interval.high // divisor)
            number = self._new(span, (), key)
            remainder = rest - Linear.unknown(number).scaled(divisor)
            self.definitions[number] = (
                remainder,
                remainder.scaled(-1).plus(divisor - 1),
                *_limits(number, span),
            )
        return whole + Linear.unknown(number)

    def _extremum(self, op: ir.BinaryOp, a: Linear, b: Linear) -> Linear:
        difference = self.interval(a - b)
        if difference.high <= 0:
            return a if op is ir.BinaryOp.MIN else b
        if difference.low >= 0:
            return b if op is ir.BinaryOp.MIN else a
        known = self._find((op, a, b))
        if known is not None:
            return Linear.unknown(known)
        x, y = self.interval(a), self.interval(b)
        pick = min if op is ir.BinaryOp.MIN else max
        span = Interval(pick(x.low, y.low), pick(x.high, y.high))
        number = self._new(span, (), (op, a, b))
        sign = 1 if op is ir.BinaryOp.MIN else -1
        over_a = (a - Linear.unknown(number)).scaled(sign)
        over_b = (b - Linear.unknown(number)).scaled(sign)
        one_of = Either(((over_a.scaled(-1),), (over_b.scaled(-1),)))
        self.definitions[number] = (over_a, over_b, one_of)
        return Linear.unknown(number)

    def _choice(self, e: ir.Expr, condition: ir.Expr, then: Linear, otherwise: Linear) -> Linear:
        span = self.bounds.of(e)
        number = self._new(span, ())
        unknown = Linear.unknown(number)
        cases = Either(
            (
                (*self.facts(condition, truth=True), *equal(unknown, then)),
                (*self.facts(condition, truth=False), *equal(unknown, otherwise)),
            )
        )
        self.definitions[number] = (*_limits(number, span), cases)
        return unknown

    # --- conditions ---

    def facts(self, condition: ir.Expr, *, truth: bool) -> tuple[Fact, ...]:
        """Return what follows from a condition being true, or false; nothing if not linear."""
        match condition:
            case ir.IntImm(value):
                return () if bool(value) is truth else (IMPOSSIBLE,)
            case ir.Var() if condition in self._conditions:
                return self.facts(self._conditions[condition], truth=truth)
            case ir.Unary(ir.UnaryOp.NOT, a):
                return self.facts(a, truth=not truth)
            case ir.Binary(ir.BinaryOp.AND | ir.BinaryOp.OR as op, a, b):
                first, second = self.facts(a, truth=truth), self.facts(b, truth=truth)
                if (op is ir.BinaryOp.AND) is truth:
                    return (*first, *second)
                return (Either((first, second)),) if first and second else ()
            case ir.Binary(op, a, b) if op.is_comparison and a.dtype.is_int:
                return _comparison(op, self.of(b) - self.of(a), truth=truth)
            case _:
                return ()


_OPPOSITE = {
    ir.BinaryOp.LT: ir.BinaryOp.GE, ir.BinaryOp.GE: ir.BinaryOp.LT, ir.BinaryOp.GT: ir.BinaryOp.LE,
    ir.BinaryOp.LE: ir.BinaryOp.GT, ir.BinaryOp.EQ: ir.BinaryOp.NE, ir.BinaryOp.NE: ir.BinaryOp.EQ,
}  # fmt: skip


def _comparison(op: ir.BinaryOp, difference: Linear, *, truth: bool) -> tuple[Fact, ...]:
    """Return facts of `a op b` where `difference` is b - a."""
    op = op if truth else _OPPOSITE[op]
    above, below = difference.plus(-1), difference.scaled(-1).plus(-1)
    if op is ir.BinaryOp.LT:
        return (above,)
    if op is ir.BinaryOp.LE:
        return (difference,)
    if op is ir.BinaryOp.GT:
        return (below,)
    if op is ir.BinaryOp.GE:
        return (difference.scaled(-1),)
    if op is ir.BinaryOp.EQ:
        return (difference, difference.scaled(-1))
    return (Either(((above,), (below,))),)


def _limits(number: int, interval: Interval) -> tuple[Fact, ...]:
    unknown = Linear.unknown(number)
    return (unknown.plus(-interval.low), unknown.scaled(-1).plus(interval.high))
