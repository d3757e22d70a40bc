"""The pass `simplify`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from microtir.tir import build, ir, visitor
from microtir.tir.passes.simplify_expr import ExprSimplifier

_ROUND_LIMIT = 8  # a rewrite may enable others; three rounds are the most seen in real kernels


@dataclass(frozen=True, slots=True)
class Simplify:
    """Removes what cannot matter, given loop bounds, conditions, declared ranges and types.

    Minima, maxima, floor divisions and guards that cannot bind, constants, loops that run once
    or never, empty statements, Lets and buffers that nobody uses.  The result means the same
    wherever the function has a meaning, and simplifying it again changes nothing.
    """

    name: ClassVar[str] = "simplify"

    def __call__(self, func: ir.PrimFunc) -> ir.PrimFunc:
        for _ in range(_ROUND_LIMIT):
            after = visitor.rewrite_function(func, _Simplifier())
            if after is func:
                break
            func = after
        return func


class _Simplifier(ExprSimplifier):
    def stmt(self, s: ir.Stmt) -> ir.Stmt:
        match s:
            case ir.For():
                return self._for(s)
            case ir.If():
                return self._if(s)
            case ir.Let():
                return self._let(s)
            case ir.Seq(statements):
                parts = [self.stmt(t) for t in statements]
                return s if _is_unchanged(parts, statements) else build.seq(parts)
            case ir.Allocate(buffer, body):
                new_body = self.stmt(body)
                used = (*visitor.buffers_read(new_body), *visitor.buffers_written(new_body))
                if buffer not in used:
                    return new_body
                return s if new_body is body else ir.Allocate(buffer, new_body)
            case ir.Store():
                new_store = self.stmt_parts(s)
                return build.NOTHING if _changes_nothing(new_store) else new_store
            case _:
                return self.stmt_parts(s)

    def _for(self, s: ir.For) -> ir.Stmt:
        start, stop = self.expr(s.start), self.expr(s.stop)
        if self.holds(build.le(stop, start)):
            return build.NOTHING
        trips = self.facts.linear(stop) - self.facts.linear(start)
        if trips.is_constant and trips.constant == 1:
            return self._once(s.var, start, s.body)
        with self.facts.loop(s.var, start, stop):
            body = self.stmt(s.body)
        if build.is_empty(body):
            return body
        if start is s.start and stop is s.stop and body is s.body:
            return s
        return ir.For(s.var, start, stop, body, s.kind)

    def _once(self, var: ir.Var, value: ir.Expr, body: ir.Stmt) -> ir.Stmt:
        if visitor.buffers_read(value):
            # The body may store to what the start was loaded from: it is evaluated before.
            with self.facts.let(var, value):
                return ir.Let(var, value, self.stmt(body))
        return self.stmt(visitor.substitute(body, {var: value}))

    def _if(self, s: ir.If) -> ir.Stmt:
        condition = self.expr(s.condition)
        if isinstance(condition, ir.IntImm):
            taken = s.then if condition.value else s.otherwise
            return build.NOTHING if taken is None else self.stmt(taken)
        with self.facts.assuming(condition):
            then = self.stmt(s.then)
        otherwise = None
        if s.otherwise is not None:
            with self.facts.assuming(condition, truth=False):
                otherwise = self.stmt(s.otherwise)
            if build.is_empty(otherwise):
                otherwise = None
        if build.is_empty(then):
            if otherwise is None:
                return then
            return ir.If(build.logical_not(condition), otherwise)
        if (
            otherwise is not None
            and isinstance(condition, ir.Unary)
            and condition.op is ir.UnaryOp.NOT
        ):
            return ir.If(condition.a, otherwise, then)
        if condition is s.condition and then is s.then and otherwise is s.otherwise:
            return s
        return ir.If(condition, then, otherwise)

    def _let(self, s: ir.Let) -> ir.Stmt:
        value = self.expr(s.value)
        if isinstance(value, ir.IntImm | ir.FloatImm | ir.Var):
            return self.stmt(visitor.substitute(s.body, {s.var: value}))
        with self.facts.let(s.var, value):
            body = self.stmt(s.body)
        if s.var not in visitor.variables_used(body):
            return body
        return s if value is s.value and body is s.body else ir.Let(s.var, value, body)


def _changes_nothing(s: ir.Stmt) -> bool:
    """Return whether a store writes back what it has just read."""
    return isinstance(s, ir.Store) and s.value == ir.Load(s.buffer, s.indices)


def _is_unchanged(parts: list[ir.Stmt], old: tuple[ir.Stmt, ...]) -> bool:
    """Return whether a sequence keeps its parts and has nothing to flatten."""
    same = len(parts) != 1 and all(a is b for a, b in zip(parts, old, strict=True))
    return same and not any(isinstance(p, ir.Seq) for p in parts)
