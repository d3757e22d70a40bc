"""The pass `partition_loops`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from microtir.tir import build, ir, visitor
from microtir.tir.analysis.facts import Facts
from microtir.tir.analysis.inequalities import conjuncts, margin
from microtir.tir.analysis.interval import Interval
from microtir.tir.passes.guards import is_total, limit, sole_guards, without


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

    def __call__(self, func: ir.PrimFunc) -> ir.PrimFunc:
        split = visitor.rewrite_function(func, _Splitter(self.max_nodes))
        return visitor.rewrite_function(split, _Clipper())


def duplicate(s: ir.Stmt) -> ir.Stmt:
    """Copy a statement with new objects for all that it defines: a Var is defined once."""
    fresh: dict[ir.Param, visitor.Replacement] = {}
    for node in visitor.walk(s):
        if isinstance(node, ir.For | ir.Let):
            fresh[node.var] = build.fresh(node.var)
        elif isinstance(node, ir.Allocate):
            fresh[node.buffer] = replace(node.buffer)
    return visitor.substitute(s, fresh) if fresh else s


class _Scoped(visitor.Rewriter):
    """A rewriter that knows what holds where it is."""

    def __init__(self) -> None:
        self.facts = Facts()

    def stmt(self, s: ir.Stmt) -> ir.Stmt:
        match s:
            case ir.For():
                return self.loop(s)
            case ir.If(condition, then, otherwise):
                with self.facts.assuming(condition):
                    new_then = self.stmt(then)
                new_else = otherwise
                if otherwise is not None:
                    with self.facts.assuming(condition, truth=False):
                        new_else = self.stmt(otherwise)
                if new_then is then and new_else is otherwise:
                    return s
                return ir.If(condition, new_then, new_else)
            case ir.Let(var, value, body):
                with self.facts.let(var, value):
                    new_body = self.stmt(body)
                return s if new_body is body else ir.Let(var, value, new_body)
            case _:
                return self.stmt_parts(s)

    def loop(self, s: ir.For) -> ir.Stmt:
        with self.facts.loop(s.var, s.start, s.stop):
            body = self.stmt(s.body)
        return s if body is s.body else replace(s, body=body)


# --- guards that become certain -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Cut:
    """A guard holds for every iteration on one side of `at`: below it, or from it on."""

    guard: ir.Expr
    at: int
    holds_below: bool


class _Splitter(_Scoped):
    """Outer loops first: what is certain for a whole tile needs no guard inside it."""

    def __init__(self, max_nodes: int) -> None:
        super().__init__()
        self.max_nodes = max_nodes

    def loop(self, s: ir.For) -> ir.Stmt:
        cut = self.best_cut(s)
        if cut is None:
            return super().loop(s)
        at = build.const(cut.at, s.var.dtype)
        certain = without(s.body, cut.guard)
        below, above = (certain, s.body) if cut.holds_below else (s.body, certain)
        first = ir.For(s.var, s.start, build.minimum(s.stop, at), below, s.kind)
        second = duplicate(ir.For(s.var, build.maximum(s.start, at), s.stop, above, s.kind))
        # Each part may hold further guards; this one cannot cut either of them again.
        return build.seq(self.stmt(first), self.stmt(second))

    def best_cut(self, s: ir.For) -> _Cut | None:
        if sum(1 for _ in visitor.walk(s.body)) > self.max_nodes:
            return None
        # A loop that does nothing but one guard is clipped afterwards, without a second copy.
        clipped = [] if s.kind is ir.LoopKind.UNROLLED else sole_guards(s.body)
        with self.facts.loop(s.var, s.start, s.stop):
            span = self.facts.bounds.ranges[s.var]
            for cut in self.cuts(s.var, s.body):
                is_clipped = any(cut.guard is g for g in clipped)
                if span.low < cut.at <= span.high and not (
                    is_clipped and limit(self.facts, s.var, cut.guard)
                ):
                    return cut
        return None

    def cuts(self, var: ir.Var, s: ir.Stmt) -> Iterator[_Cut]:
        """Yield where guards inside `s` become certain, whatever all else than `var` is."""
        match s:
            case ir.Seq(statements):
                for statement in statements:
                    yield from self.cuts(var, statement)
            case ir.For(inner, start, stop, body):
                with self.facts.loop(inner, start, stop):
                    yield from self.cuts(var, body)
            case ir.Let(name, value, body):
                with self.facts.let(name, value):
                    yield from self.cuts(var, body)
            case ir.Allocate(_, body):
                yield from self.cuts(var, body)
            case ir.If(condition, then, otherwise):
                for guard in conjuncts(condition):
                    cut = self.cut(var, guard)
                    if cut is not None:
                        yield cut
                yield from self.cuts(var, then)
                if otherwise is not None:
                    yield from self.cuts(var, otherwise)
            case _:
                return

    def cut(self, var: ir.Var, guard: ir.Expr) -> _Cut | None:
        terms = margin(guard)
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


# --- loops that are one guard -------------------------------------------------------------------


class _Clipper(_Scoped):
    """Inner loops first: a guard that an inner loop does not need moves out to the next one."""

    def loop(self, s: ir.For) -> ir.Stmt:
        inner = super().loop(s)
        assert isinstance(inner, ir.For)
        body = _joined(inner.body)
        if not isinstance(body, ir.If) or body.otherwise is not None:
            return inner
        start, stop = inner.start, inner.stop
        outside: list[ir.Expr] = []
        remaining: list[ir.Expr] = []
        for guard in conjuncts(body.condition):
            bound = limit(self.facts, inner.var, guard)
            if inner.var not in visitor.variables_used(guard) and is_total(self.facts, guard):
                outside.append(guard)
            elif bound is None:
                remaining.append(guard)
            elif bound[0]:
                stop = build.minimum(stop, bound[1])
            else:
                start = build.maximum(start, bound[1])
        is_literal = isinstance(start, ir.IntImm) and isinstance(stop, ir.IntImm)
        if len(remaining) == len(list(conjuncts(body.condition))) or (
            inner.kind is ir.LoopKind.UNROLLED and not is_literal
        ):
            return inner
        then = ir.If(build.logical_and(*remaining), body.then) if remaining else body.then
        clipped = ir.For(inner.var, start, stop, then, inner.kind)
        return ir.If(build.logical_and(*outside), clipped) if outside else clipped


def _joined(s: ir.Stmt) -> ir.Stmt:
    """Join an If that holds nothing but an If into one."""
    if isinstance(s, ir.If) and s.otherwise is None:
        inner = _joined(s.then)
        if isinstance(inner, ir.If) and inner.otherwise is None:
            return ir.If(build.logical_and(s.condition, inner.condition), inner.then)
    return s
