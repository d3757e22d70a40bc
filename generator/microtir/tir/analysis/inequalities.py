"""Conditions as inequalities of sums."""

from __future__ import annotations

from collections.abc import Iterator

from microtir.tir.analysis.terms import Terms, collect
from microtir.tir.ir import Binary, BinaryOp, Expr


def conjuncts(condition: Expr) -> Iterator[Expr]:
    """Yield the conditions that `and` joins."""
    if isinstance(condition, Binary) and condition.op is BinaryOp.AND:
        yield from conjuncts(condition.a)
        yield from conjuncts(condition.b)
    else:
        yield condition


def margin(guard: Expr) -> Terms | None:
    """Return the sum that is not negative exactly where an inequality of integers holds."""
    if not isinstance(guard, Binary) or not guard.a.dtype.is_int:
        return None
    a, b = guard.a, guard.b
    if guard.op in (BinaryOp.LT, BinaryOp.LE):
        a, b = b, a
    elif guard.op not in (BinaryOp.GT, BinaryOp.GE):
        return None
    strict = guard.op in (BinaryOp.LT, BinaryOp.GT)
    return collect(Binary(BinaryOp.SUB, a, b)).plus(-1 if strict else 0)
