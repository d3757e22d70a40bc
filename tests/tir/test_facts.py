"""The prover: sound against every value of the variables, and strong enough for kernels."""

from __future__ import annotations

import itertools
from contextlib import ExitStack

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.dtype import DType
from microtir.errors import TirError
from microtir.tir import build
from microtir.tir.analysis.affine import Linear, has_no_solution
from microtir.tir.analysis.bounds import Bounds
from microtir.tir.analysis.facts import Facts
from microtir.tir.interpreter import Interpreter
from microtir.tir.ir import (
    Binary,
    BinaryOp,
    Buffer,
    Cast,
    Expr,
    For,
    If,
    IntImm,
    Load,
    PrimFunc,
    Select,
    Store,
    Var,
)

A, B = Var("a"), Var("b")
_RANGES = {A: (-3, 6), B: (0, 5)}
_COMPARISONS = [BinaryOp.LT, BinaryOp.LE, BinaryOp.GT, BinaryOp.GE, BinaryOp.EQ, BinaryOp.NE]


@st.composite
def sums(draw: st.DrawFn, depth: int = 2) -> Expr:
    """Quasi-affine expressions in A and B."""
    total: Expr = build.add(
        build.add(
            build.mul(A, draw(st.integers(-3, 3))),
            build.mul(B, draw(st.integers(-2, 2))),
        ),
        draw(st.integers(-6, 6)),
    )
    kind = draw(st.integers(0, 5)) if depth else 5
    if kind == 0:
        return Binary(BinaryOp.FLOORDIV, total, IntImm(draw(st.integers(1, 4))))
    if kind == 1:
        return Binary(BinaryOp.FLOORMOD, total, IntImm(draw(st.integers(1, 4))))
    if kind == 2:
        op = draw(st.sampled_from([BinaryOp.MIN, BinaryOp.MAX]))
        return Binary(op, total, draw(sums(depth - 1)))
    if kind == 3:
        return Select(draw(conditions(depth - 1)), total, draw(sums(depth - 1)))
    if kind == 4:
        return build.sub(total, draw(sums(depth - 1)))
    return total


@st.composite
def conditions(draw: st.DrawFn, depth: int = 1) -> Expr:
    """Comparisons of quasi-affine expressions, joined."""
    kind = draw(st.integers(0, 3)) if depth else 3
    if kind == 0:
        return Binary(BinaryOp.AND, draw(conditions(depth - 1)), draw(conditions(depth - 1)))
    if kind == 1:
        return Binary(BinaryOp.OR, draw(conditions(depth - 1)), draw(conditions(depth - 1)))
    op = draw(st.sampled_from(_COMPARISONS))
    return Binary(op, draw(sums(depth)), draw(sums(depth)))


def loops(body: If | Store) -> For:
    """A and B run through all their values."""
    inner = For(B, IntImm(_RANGES[B][0]), IntImm(_RANGES[B][1]), body)
    return For(A, IntImm(_RANGES[A][0]), IntImm(_RANGES[A][1]), inner)


def counter_examples(guard: Expr, goal: Expr) -> int:
    """For how many values the guard holds and the goal does not."""
    out = Buffer("out", (1,), DType.INT32)
    here = (IntImm(0),)
    failed = Cast(DType.INT32, build.logical_not(goal))
    count = Store(out, here, build.add(Load(out, here), failed))
    result = np.zeros(1, np.int32)
    Interpreter([PrimFunc("f", (out,), loops(If(guard, count)))]).run("f", [result])
    return int(result[0])


def known(guard: Expr, stack: ExitStack) -> Facts:
    """Facts inside the loops over A and B, where the guard holds."""
    facts = Facts()
    for var, (low, high) in _RANGES.items():
        stack.enter_context(facts.loop(var, IntImm(low), IntImm(high)))
    stack.enter_context(facts.assuming(guard))
    return facts


@given(conditions(), conditions())
@settings(max_examples=200)
def test_what_is_proven_holds_for_all_values(guard: Expr, goal: Expr) -> None:
    """Nothing is proven that has a counter-example."""
    with ExitStack() as stack:
        if known(guard, stack).prove(goal):
            assert counter_examples(guard, goal) == 0


@given(conditions(), sums())
@settings(max_examples=120)
def test_intervals_hold_for_all_values(guard: Expr, e: Expr) -> None:
    """An interval under a condition contains every value that occurs."""
    with ExitStack() as stack:
        facts = known(guard, stack)
        interval = facts.interval(e)
        plain = facts.bounds.of(e)
    for span in (interval, plain):
        inside = Binary(BinaryOp.AND, build.ge(e, span.low), build.le(e, span.high))
        assert counter_examples(guard, inside) == 0


@given(sums(0), sums(0), st.integers(-3, 3))
@settings(max_examples=100)
def test_linear_goals_are_decided(a: Expr, b: Expr, offset: int) -> None:
    """A linear inequality that holds everywhere under linear facts is proven."""
    guard, goal = build.le(a, b), build.le(a, build.add(b, offset))
    if counter_examples(guard, goal) == 0 and not isinstance(goal, IntImm) and offset >= 0:
        with ExitStack() as stack:
            assert known(guard, stack).prove(goal)


def test_bounds_need_no_facts() -> None:
    """Interval arithmetic alone knows literals, types and declared ranges."""
    n = Var("n", DType.INT32, 1, 8)
    byte = Load(Buffer("x", (4,), DType.INT8), (IntImm(0),))
    assert Bounds().of(build.mul(n, -2)).low == -16
    assert Bounds().of(build.cast(DType.INT32, byte)).high == 127
    assert Bounds().of(Binary(BinaryOp.FLOORMOD, n, IntImm(16))).high == 8
    with pytest.raises(TirError, match="floating"):
        Bounds().of(build.float_const(1.0))


def test_integer_tightening_finds_what_rationals_miss() -> None:
    """2x = 1 has a rational solution and no integer one."""
    x = Linear.unknown(0)
    assert has_no_solution([x.scaled(2).plus(-1), x.scaled(-2).plus(1)])
    assert not has_no_solution([x.scaled(2).plus(-2), x.scaled(-2).plus(2)])


def test_equations_are_solved_over_the_integers() -> None:
    """Only m = 1 lies in 0..2 and makes 2q + m = 3, in whatever order unknowns are numbered."""
    for q, m in ((Linear.unknown(0), Linear.unknown(1)), (Linear.unknown(1), Linear.unknown(0))):
        total = (q.scaled(2) + m).plus(-3)
        known = [total, total.scaled(-1), m, m.scaled(-1).plus(2)]
        assert has_no_solution([*known, m.plus(-2)])
        assert has_no_solution([*known, m.scaled(-1)])
        assert not has_no_solution([*known, m.plus(-1), m.scaled(-1).plus(1)])


@st.composite
def systems(draw: st.DrawFn) -> list[Linear]:
    """Forms over three unknowns in -4..4, some of them twice with opposite signs."""
    unknowns = [Linear.unknown(n) for n in range(3)]
    forms = [side for x in unknowns for side in (x.plus(4), x.scaled(-1).plus(4))]
    for _ in range(draw(st.integers(1, 3))):
        factors = dict(enumerate(draw(st.tuples(*[st.integers(-7, 7)] * 3))))
        form = Linear.of(factors, draw(st.integers(-9, 9)))
        forms += [form, form.scaled(-1)] if draw(st.booleans()) else [form]
    return forms


@given(systems())
@settings(max_examples=150, deadline=None)
def test_no_system_with_a_solution_is_refuted(forms: list[Linear]) -> None:
    """Equations of any coefficients included; every point of the box is tried."""
    points = itertools.product(range(-4, 5), repeat=3)
    has_solution = any(
        all(sum(a * point[x] for x, a in f.terms) + f.constant >= 0 for f in forms)
        for point in points
    )
    assert not (has_solution and has_no_solution(forms))


def test_elimination_gives_up_on_large_systems() -> None:
    """A system that grows beyond the limit is refused instead of running for minutes."""
    random = np.random.default_rng(1)
    forms = [
        Linear.of({x: int(c) for x, c in enumerate(random.integers(-9, 10, 14))}, 5)
        for _ in range(60)
    ]
    assert has_no_solution(forms) is None
