"""Placement and its checker: random programs, and every way in which a placement can be wrong."""

from __future__ import annotations

import random
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.config.enums import Placement
from microtir.dtype import DType
from microtir.errors import MemoryPlanError, ToolError
from microtir.memory.checker import check
from microtir.memory.lifetimes import lifetimes, lower_bound
from microtir.memory.place import place
from microtir.memory.placement import exact_fit, first_fit, workspace_size
from microtir.memory.pools import Pool
from microtir.memory.solver import optimal_fit
from microtir.support.resources import install_extra
from microtir.tir import build
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.ir import (
    Allocate,
    Buffer,
    BufferView,
    For,
    IntImm,
    Invoke,
    Load,
    PrimFunc,
    Scope,
    Seq,
    Stmt,
    Store,
    Var,
)
from microtir.tir.text import parse_function, to_text
from microtir.tir.verify import verify


def layer(size_in: int, size_out: int) -> PrimFunc:
    """A function that reads all of its first buffer and writes all of its second, twice over.

    What is written in the first pass is in the way of the second, wherever it is.
    """
    x, y = Buffer("x", (size_in,), DType.INT8), Buffer("y", (size_out,), DType.INT8)
    passes = []
    for i in (Var("i"), Var("j")):
        source, target = (build.minimum(i, size - 1) for size in (size_in, size_out))
        store = Store(y, (target,), Load(x, (source,)))
        passes.append(For(i, IntImm(0), IntImm(max(size_in, size_out)), store))
    return PrimFunc(f"layer_{size_in}_{size_out}", (x, y), Seq(tuple(passes)))


def view(buffer: Buffer) -> BufferView:
    """The whole of a flat buffer."""
    (size,) = buffer.shape
    assert isinstance(size, int)
    return BufferView(buffer, (size,), buffer.dtype)


class Program:
    """A chain of layers with skips: layer i reads one earlier buffer and writes buffer i."""

    def __init__(self, sizes: list[int], sources: list[int], loop: bool = False) -> None:
        self.input = Buffer("input", (7,), DType.INT8)
        self.buffers = [
            Buffer(f"b{i}", (size,), DType.INT8, Scope.WORKSPACE) for i, size in enumerate(sizes)
        ]
        self.callees: dict[str, PrimFunc] = {}
        calls: list[Stmt] = []
        for i, target in enumerate(self.buffers):
            source = self.input if i == 0 else self.buffers[sources[i] % i]
            (size_in,), (size_out,) = source.shape, target.shape
            assert isinstance(size_in, int) and isinstance(size_out, int)
            function = layer(size_in, size_out)
            self.callees[function.name] = function
            calls.append(Invoke(function.name, (view(source), view(target))))
        body: Stmt = Seq(tuple(calls))
        if loop:
            body = For(Var("i"), IntImm(0), IntImm(2), body)
        for buffer in reversed(self.buffers):
            body = Allocate(buffer, body)
        self.main = PrimFunc("main", (self.input,), body, exported=True)


programs = st.integers(1, 9).flatmap(
    lambda n: st.builds(
        Program,
        st.lists(st.integers(1, 40), min_size=n, max_size=n),
        st.lists(st.integers(0, 8), min_size=n, max_size=n),
        st.booleans(),
    )
)


@settings(deadline=None, max_examples=150)
@given(programs, st.sampled_from([1, 4, 16]), st.sampled_from(list(Placement)))
def test_random_programs_are_placed_and_proven(
    program: Program, alignment: int, placement: Placement
) -> None:
    """Any program is placed aligned, inside its size, at or above its bound, and checked."""
    _, plan = place(program.main, program.callees, [Pool(alignment=alignment)], placement)
    assert plan.verified
    assert plan.workspace_size >= plan.lower_bound
    assert all(p.offset % alignment == 0 for p in plan.placements)
    assert max(p.offset + p.size for p in plan.placements) == plan.workspace_size


@settings(deadline=None, max_examples=60)
@given(programs)
def test_the_search_is_never_worse_than_first_fit(program: Program) -> None:
    """The exhaustive search starts from the heuristic's result and only improves it."""
    lives = lifetimes(program.main)
    exact = workspace_size(lives, exact_fit(lives, 1))
    assert lower_bound(lives) <= exact <= workspace_size(lives, first_fit(lives, 1))


@settings(deadline=None, max_examples=40)
@given(programs, st.sampled_from([1, 4]))
def test_the_solver_is_never_worse_and_its_bound_holds(program: Program, alignment: int) -> None:
    """The solver is at or below what the search finds, and at or above what it has proven."""
    lives = lifetimes(program.main, program.callees)
    offsets, bound = optimal_fit(lives, alignment)
    size = workspace_size(lives, offsets)
    assert lower_bound(lives) <= bound <= size
    assert size <= workspace_size(lives, exact_fit(lives, alignment))
    assert all(offset % alignment == 0 for offset in offsets.values())
    assert (offsets, bound) == optimal_fit(lives, alignment), "the same answer every time"
    _, plan = place(program.main, program.callees, [Pool(alignment=alignment)], Placement.OPTIMAL)
    assert (plan.workspace_size, plan.lower_bound) == (size, bound)


def test_a_missing_solver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks for the solver and has none is told what to install."""
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(ToolError, match="OR-Tools is not installed") as caught:
        place(*small_program(), [Pool()], Placement.OPTIMAL)
    assert caught.value.fix == install_extra("solver")


def small_program() -> tuple[PrimFunc, dict[str, PrimFunc]]:
    """Two layers."""
    program = Program([4, 8], [0, 0])
    return program.main, program.callees


def test_searches_find_a_placement_that_the_orders_miss() -> None:
    """Seven buffers for which no order reaches the lower bound, but searches do."""
    for seed in range(4000):
        rng = random.Random(seed)
        n = 7
        program = Program(
            [rng.randint(1, 9) for _ in range(n)], [rng.randint(0, 8) for _ in range(n)]
        )
        lives = lifetimes(program.main)
        bound = lower_bound(lives)
        if workspace_size(lives, first_fit(lives, 1, work=0)) > bound:
            assert workspace_size(lives, exact_fit(lives, 1, work=0)) == bound
            assert workspace_size(lives, first_fit(lives, 1)) == bound
            return
    pytest.fail("no program in which the orders miss the bound")


def relocated(main: PrimFunc, offsets: dict[str, int]) -> PrimFunc:
    """Main with every workspace buffer as a view at the given offset, made without the planner."""
    workspace = Buffer("workspace", (4096,), DType.UINT8)

    def visit(statement: Stmt) -> Stmt:
        match statement:
            case Allocate(_, body):
                return visit(body)
            case Seq(statements):
                return Seq(tuple(visit(s) for s in statements))
            case Invoke(function, args):
                return Invoke(function, tuple(moved(a) for a in args if isinstance(a, BufferView)))
            case _:
                raise AssertionError(statement)

    def moved(arg: BufferView) -> BufferView:
        if arg.buffer.name not in offsets:
            return arg
        return BufferView(workspace, arg.shape, arg.dtype, offsets[arg.buffer.name])

    return replace(main, params=(*main.params, workspace), body=visit(main.body))


straight_programs = st.integers(2, 9).flatmap(
    lambda n: st.builds(
        Program,
        st.lists(st.integers(1, 40), min_size=n, max_size=n),
        st.lists(st.integers(0, 8), min_size=n, max_size=n),
    )
)


@settings(deadline=None, max_examples=200)
@given(straight_programs, st.data())
def test_the_checker_refuses_any_overlap_of_living_buffers(
    program: Program, data: st.DataObject
) -> None:
    """Two buffers alive at one step that share a byte are refused; apart, they are accepted."""
    lives = lifetimes(program.main)
    starts = [sum(life.size for life in lives[:i]) for i in range(len(lives))]
    offsets = {life.buffer.name: start for life, start in zip(lives, starts, strict=True)}
    check(program.main, relocated(program.main, offsets), program.callees, [4096])
    pairs = [(a, b) for a in lives for b in lives if a is not b and a.distance(b) is not None]
    moved, other = data.draw(st.sampled_from(pairs))
    position = offsets[other.buffer.name] + data.draw(st.integers(0, other.size - 1))
    offsets[moved.buffer.name] = position
    with pytest.raises(MemoryPlanError, match=r"read but another buffer|over another argument"):
        check(program.main, relocated(program.main, offsets), program.callees, [4096])


def test_the_checker_refuses_bytes_outside_the_workspace() -> None:
    """A buffer that ends behind the workspace is named with its call."""
    program = Program([8, 8], [0, 0])
    with pytest.raises(MemoryPlanError, match="bytes 60 to 68 lie outside the workspace of 64"):
        check(program.main, relocated(program.main, {"b0": 0, "b1": 60}), program.callees, [64])


def test_the_checker_refuses_another_program() -> None:
    """Placement may not reorder or replace calls."""
    program, other = Program([8, 9], [0, 0]), Program([8, 10], [0, 0])
    placed = relocated(other.main, {"b0": 0, "b1": 16})
    with pytest.raises(MemoryPlanError, match="placement changed call 1"):
        check(program.main, placed, program.callees, [64])


def test_a_buffer_that_nobody_uses_is_refused() -> None:
    """A WORKSPACE buffer without a call is a defect of the executor and is named."""
    unused = Buffer("unused", (4,), DType.INT8, Scope.WORKSPACE)
    with pytest.raises(MemoryPlanError, match="never used"):
        lifetimes(PrimFunc("main", (), Allocate(unused, Seq(()))))


def test_what_a_loop_touches_lives_through_the_loop() -> None:
    """A buffer of a loop body keeps its bytes for all iterations."""
    program = Program([4, 4, 4], [0, 0, 1], loop=True)
    assert {(life.first, life.last) for life in lifetimes(program.main)} == {(0, 2)}


def test_a_thousand_buffers_are_no_problem() -> None:
    """Passes over main do not recurse over its buffers: a large model has many."""
    program = Program([8] * 1000, [999, *range(999)])
    verify(program.main, program.callees)
    prove_accesses(program.main, program.callees)
    assert to_text(parse_function(to_text(program.main))) == to_text(program.main)
    placed, plan = place(program.main, program.callees, [Pool(alignment=4)], Placement.GREEDY)
    assert plan.workspace_size == plan.lower_bound == 16
    verify(placed, program.callees)
