"""Questions that legality checks ask the prover of `tir.analysis`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from microtir.tir import build, ir
from microtir.tir.analysis.affine import Linear
from microtir.tir.analysis.facts import Facts


def impossible(facts: Sequence[ir.Expr], goals: Sequence[ir.Expr]) -> bool:
    """Return whether no values of the variables make all of these conditions true.

    The contradiction that is looked for involves one of the `goals`; False where none was found.
    """
    known = Facts()
    with ExitStack() as scopes:
        for fact in (*facts, *goals):
            scopes.enter_context(known.assuming(fact))
        return any(known.prove(build.logical_not(goal)) for goal in goals)


def proves(facts: Sequence[ir.Expr], goal: ir.Expr) -> bool:
    """Return whether `goal` holds wherever the facts hold; False also where no proof was found."""
    known = Facts()
    with ExitStack() as scopes:
        for fact in facts:
            scopes.enter_context(known.assuming(fact))
        return known.prove(goal)


def difference(a: ir.Expr, b: ir.Expr) -> Linear:
    """Return the linear form of a - b."""
    known = Facts()
    return known.linear(a) - known.linear(b)


def constant_difference(a: ir.Expr, b: ir.Expr) -> int | None:
    """Return a - b if that is the same number whatever the variables are, else None."""
    form = difference(a, b)
    return form.constant if form.is_constant else None


def cancelled_difference(a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """Return a - b without the terms that both have, so that indices stay readable."""
    known = constant_difference(a, b)
    if known is not None:
        return build.const(known)
    plus, minus = list(_terms(a, 1)), list(_terms(b, 1))
    for term in list(plus):
        if term in minus:
            plus.remove(term)
            minus.remove(term)
    signed = [*plus, *((-sign, term) for sign, term in minus)]
    signed.sort(key=lambda item: -item[0])  # 1 - row, not -row + 1
    result: ir.Expr = build.const(0)
    for sign, part in signed:
        result = build.add(result, part) if sign > 0 else build.sub(result, part)
    return result


def _terms(e: ir.Expr, sign: int) -> Iterator[tuple[int, ir.Expr]]:
    """Yield the terms of a sum, each with its sign; the caller's folding joins literals."""
    match e:
        case ir.Binary(ir.BinaryOp.ADD, a, b):
            yield from _terms(a, sign)
            yield from _terms(b, sign)
        case ir.Binary(ir.BinaryOp.SUB, a, b):
            yield from _terms(a, sign)
            yield from _terms(b, -sign)
        case _:
            yield sign, e
