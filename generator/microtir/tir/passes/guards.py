"""Conditions around statements, as sums that must not be negative."""

from __future__ import annotations

from microtir.tir import build
from microtir.tir.analysis.facts import Facts
from microtir.tir.analysis.inequalities import conjuncts, margin
from microtir.tir.analysis.terms import Terms, cannot_overflow, rebuild
from microtir.tir.ir import Binary, BinaryOp, Expr, For, If, IntImm, Load, Seq, Stmt, Var
from microtir.tir.visitor import Rewriter, variables_used, walk

_DIVISIONS = (
    BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.SHIFT_LEFT,
    BinaryOp.SHIFT_RIGHT,
)  # fmt: skip


def limit(facts: Facts, var: Var, guard: Expr) -> tuple[bool, Expr] | None:
    """Return (True, t) if the guard is exactly `var < t`, (False, t) if it is `var >= t`.

    None if it is neither, or if t could not be computed where the guard was not evaluated.
    """
    terms = margin(guard)
    factor = terms.factors.get(var) if terms else None
    if terms is None or factor is None:
        return None
    others = {e: f for e, f in terms.factors.items() if e is not var}
    if any(var in variables_used(e) for e in others):
        return None
    # With a negative factor -f, var < (rest + f) / f rounded down; with a positive one,
    # var >= -rest / f rounded up.
    sign = 1 if factor < 0 else -1
    scaled = Terms({e: f * sign for e, f in others.items()}, terms.constant * sign)
    rest = rebuild(scaled.plus(-factor if factor < 0 else factor - 1), var.dtype)
    if rest is None or not is_total(facts, rest):
        return None
    return factor < 0, build.floordiv(rest, abs(factor))


def is_total(facts: Facts, e: Expr) -> bool:
    """Return whether an expression has a value wherever its Vars have, whatever memory holds."""
    for node in walk(e):
        if isinstance(node, Load):
            return False
        if isinstance(node, Binary):
            if node.op in _DIVISIONS and not (isinstance(node.b, IntImm) and node.b.value > 0):
                return False
            if node.dtype.is_int and not cannot_overflow(facts, node):
                return False
    return True


def sole_guards(s: Stmt) -> tuple[Expr, ...]:
    """Return conditions that a statement is idle without, where they can move in front."""
    if isinstance(s, If) and s.otherwise is None:
        return (*conjuncts(s.condition), *sole_guards(s.then))
    if isinstance(s, For):
        return tuple(g for g in sole_guards(s.body) if s.var not in variables_used(g))
    if isinstance(s, Seq) and len(s.statements) == 1:
        return sole_guards(s.statements[0])
    return ()


def without(s: Stmt, guard: Expr) -> Stmt:
    """Drop a guard that is known to hold from a statement; the guard is this very object."""
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
