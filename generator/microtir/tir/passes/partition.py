"""The pass `partition_loops`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from microtir.tir import build
from microtir.tir.analysis.facts import Facts
from microtir.tir.analysis.interval import Interval
from microtir.tir.duplicate import duplicate
from microtir.tir.ir import (
    Allocate,
    Binary,
    BinaryOp,
    Expr,
    For,
    If,
    Let,
    LoopKind,
    PrimFunc,
    Seq,
    Stmt,
    Var,
)
from microtir.tir.passes.terms import Terms, cannot_overflow, collect, rebuild
from microtir.tir.visitor import Rewriter, buffers_read, rewrite_function, variables_used, walk


@dataclass(frozen=True, slots=True)
class PartitionLoops:
    """Splits loops where a guard inside becomes certain, and clips loops that are one guard.

    `for xo in [0, 3): for xi in [0, 4): if xo * 4 + xi < 10: S` becomes a main loop over xo in
    [0, 2) with S alone, and a tail for xo in [2, 3) in which xi stops at min(4, 10 - xo * 4).
    Guards are the comparisons of an If, joined by `and`, that are linear in the loop variable.

    Args:
        max_nodes: bodies with more nodes are not doubled, for the sake of code size.
    """

    name: ClassVar[str] = "partition_loops"
    max_nodes: int = 400

    def __call__(self, func: PrimFunc) -> PrimFunc:
        return rewrite_function(func, _Partitioner(self.max_nodes))


@dataclass(frozen=True, slots=True)
class _Cut:
    """A guard holds for every iteration on one side of `at`: below it, or from it on."""

    guard: Expr
    at: int
    holds_below: bool


class _Partitioner(Rewriter):
    def __init__(self, max_nodes: int) -> None:
        self.max_nodes = max_nodes
        self.facts = Facts()

    def stmt(self, s: Stmt) -> Stmt:
        match s:
            case For():
                return self._for(s)
            case If(condition, then, otherwise):
                with self.facts.assuming(condition):
                    new_then = self.stmt(then)
                if otherwise is not None:
                    with self.facts.assuming(condition, truth=False):
                        new_else: Stmt | None = self.stmt(otherwise)
                else:
                    new_else = None
                if new_then is then and new_else is otherwise:
                    return s
                return If(condition, new_then, new_else)
            case Let(var, value, body):
                with self.facts.let(var, value):
                    new_body = self.stmt(body)
                return s if new_body is body else Let(var, value, new_body)
            case _:
                return self.stmt_parts(s)

    def _for(self, s: For) -> Stmt:
        if sum(1 for _ in walk(s.body)) > self.max_nodes:
            return self._inside(s)
        with self.facts.loop(s.var, s.start, s.stop):
            span = self.facts.bounds.ranges[s.var]
            cut = next((c for c in self._cuts(s.var, s.body) if span.low < c.at <= span.high), None)
        if cut is None:
            return self._inside(self._clipped(s))
        at = build.const(cut.at, s.var.dtype)
        certain = _without(s.body, cut.guard)
        below, above = (certain, s.body) if cut.holds_below else (s.body, certain)
        first = For(s.var, s.start, build.minimum(s.stop, at), below, s.kind)
        second = duplicate(For(s.var, build.maximum(s.start, at), s.stop, above, s.kind))
        # Each part may hold further guards; this one cannot cut either of them again.
        return build.seq(self.stmt(first), self.stmt(second))

    def _inside(self, s: For) -> Stmt:
        with self.facts.loop(s.var, s.start, s.stop):
            body = self.stmt(s.body)
        return s if body is s.body else replace(s, body=body)

    # --- guards that become certain ---

    def _cuts(self, var: Var, s: Stmt) -> Iterator[_Cut]:
        """Where guards inside `s` become certain, whatever everything but `var` is."""
        match s:
            case Seq(statements):
                for statement in statements:
                    yield from self._cuts(var, statement)
            case For(inner, start, stop, body):
                with self.facts.loop(inner, start, stop):
                    yield from self._cuts(var, body)
            case Let(name, value, body):
                with self.facts.let(name, value):
                    yield from self._cuts(var, body)
            case Allocate(_, body):
                yield from self._cuts(var, body)
            case If(condition, then, otherwise):
                for guard in conjuncts(condition):
                    cut = self._cut(var, guard)
                    if cut is not None:
                        yield cut
                yield from self._cuts(var, then)
                if otherwise is not None:
                    yield from self._cuts(var, otherwise)
            case _:
                return

    def _cut(self, var: Var, guard: Expr) -> _Cut | None:
        terms = _margin(guard)
        factor = terms.factors.get(var) if terms else None
        if terms is None or factor is None:
            return None
        rest = Interval(terms.constant, terms.constant)
        for e, f in terms.factors.items():
            if e is not var:
                rest = rest + self.facts.interval(e) * Interval(f, f)
        if factor < 0:
            return _Cut(guard, rest.low // -factor + 1, holds_below=True)
        return _Cut(guard, -(rest.low // factor), holds_below=False)

    # --- loops that are one guard ---

    def _clipped(self, s: For) -> For:
        """The loop with the guards that are its whole body turned into bounds."""
        if not isinstance(s.body, If) or s.body.otherwise is not None:
            return s
        start, stop, kept = s.start, s.stop, list[Expr]()
        for guard in conjuncts(s.body.condition):
            limit = self._limit(s.var, guard)
            if limit is None or s.kind is LoopKind.UNROLLED:
                kept.append(guard)
            elif limit[0]:
                stop = build.minimum(stop, limit[1])
            else:
                start = build.maximum(start, limit[1])
        if start is s.start and stop is s.stop:
            return s
        condition = build.logical_and(*kept)
        body = s.body.then if condition == build.TRUE else If(condition, s.body.then)
        return For(s.var, start, stop, body, s.kind)

    def _limit(self, var: Var, guard: Expr) -> tuple[bool, Expr] | None:
        """(True, t) if the guard is exactly `var < t`, (False, t) if it is `var >= t`."""
        terms = _margin(guard)
        factor = terms.factors.get(var) if terms else None
        if terms is None or factor is None:
            return None
        others = {e: f for e, f in terms.factors.items() if e is not var}
        if any(var in variables_used(e) or buffers_read(e) for e in others):
            return None
        sign = 1 if factor < 0 else -1
        scaled = Terms({e: f * sign for e, f in others.items()}, terms.constant * sign)
        # var < t where t = rest / -factor + 1, or var >= t where t is -rest / factor rounded up.
        rest = rebuild(scaled.plus(0 if factor < 0 else factor - 1), var.dtype)
        if rest is None or not cannot_overflow(self.facts, rest):
            return None
        quotient = build.floordiv(rest, abs(factor))
        return (True, build.add(quotient, 1)) if factor < 0 else (False, quotient)


def conjuncts(condition: Expr) -> Iterator[Expr]:
    """The conditions that `and` joins."""
    if isinstance(condition, Binary) and condition.op is BinaryOp.AND:
        yield from conjuncts(condition.a)
        yield from conjuncts(condition.b)
    else:
        yield condition


def _margin(guard: Expr) -> Terms | None:
    """The sum that is not negative exactly where the guard holds."""
    if not isinstance(guard, Binary) or not guard.a.dtype.is_int:
        return None
    a, b = guard.a, guard.b
    if guard.op in (BinaryOp.LT, BinaryOp.LE):
        a, b = b, a
    elif guard.op not in (BinaryOp.GT, BinaryOp.GE):
        return None
    strict = guard.op in (BinaryOp.LT, BinaryOp.GT)
    return collect(Binary(BinaryOp.SUB, a, b)).plus(-1 if strict else 0)


def _without(s: Stmt, guard: Expr) -> Stmt:
    """The statement with a guard that is known to hold dropped."""
    return _Dropper(guard).stmt(s)


class _Dropper(Rewriter):
    def __init__(self, guard: Expr) -> None:
        self.guard = guard

    def expr(self, e: Expr) -> Expr:
        return e

    def stmt(self, s: Stmt) -> Stmt:
        s = self.stmt_parts(s)
        if not isinstance(s, If) or not any(c is self.guard for c in conjuncts(s.condition)):
            return s
        rest = [c for c in conjuncts(s.condition) if c is not self.guard]
        return If(build.logical_and(*rest), s.then, s.otherwise) if rest else s.then
