"""The checker against damage to main and its rows: each mutant is refused, or computes the same.

What planning may get wrong beside offsets: the order of calls, which rows they compute, how many
rows a ring has, what memory a call's scratch is, and when a sum begins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from itertools import combinations

import pytest

from microtir.dtype import DType
from microtir.errors import MemoryPlanError
from microtir.memory.checker import check
from microtir.memory.place import relocate
from microtir.tir import build
from microtir.tir.ir import (
    Allocate,
    Binary,
    BinaryOp,
    Buffer,
    BufferArgument,
    BufferView,
    Expr,
    IntImm,
    Invoke,
    Load,
    PrimFunc,
    Scope,
    Select,
    Seq,
    Stmt,
    Store,
    Var,
)
from microtir.tir.text import parse_function
from microtir.tir.visitor import Rewriter, rewrite_function, walk
from tests.support.mutants import Mutant, Planned, replaced

PER_PLAN = 4
SEEDS = (3, 4, 6, 24)  # plans with rings, sums and scratch among them


def calls(plan: Planned) -> Iterator[tuple[Invoke, PrimFunc]]:
    """The calls of main as they are written, each with what it calls."""
    for node in walk(plan.main):
        if isinstance(node, Invoke):
            yield node, plan.callees[node.function]


def takes_rows(callee: PrimFunc) -> bool:
    """Whether its last arguments are the first row and the one behind the last."""
    return callee.row_range is not None


def other_orders(plan: Planned) -> Iterator[Mutant]:
    """Two statements of a sequence in each other's place."""
    for node in walk(plan.main):
        if isinstance(node, Seq):
            for a, b in combinations(range(len(node.statements)), 2):
                order = list(node.statements)
                order[a], order[b] = order[b], order[a]
                yield plan.mutant("order", main=replaced(plan.main, node, Seq(tuple(order))))


def other_rows(plan: Planned) -> Iterator[Mutant]:
    """Calls that begin or end a row too early or too late, or both."""
    for call, callee in calls(plan):
        if not takes_rows(callee):
            continue
        *others, first, stop = call.args
        assert isinstance(first, Expr) and isinstance(stop, Expr)
        for more, less in ((-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (1, 1)):
            args = (*others, build.add(first, more), build.add(stop, less))
            yield plan.mutant("rows", main=replaced(plan.main, call, replace(call, args=args)))


def calls_made_twice(plan: Planned) -> Iterator[Mutant]:
    """A call, and at once the same again."""
    for call, _ in calls(plan):
        yield plan.mutant("twice", main=replaced(plan.main, call, Seq((call, call))))


def scratch_elsewhere(plan: Planned) -> Iterator[Mutant]:
    """A call whose scratch is the beginning of another of its arguments."""
    for call, callee in calls(plan):
        for at, param in enumerate(callee.params):
            for other in call.args if param is callee.scratch else ():
                arg = call.args[at]
                assert isinstance(arg, BufferView)
                if isinstance(other, BufferView) and other.buffer is not arg.buffer:
                    view = replace(arg, buffer=other.buffer)
                    args = (*call.args[:at], view, *call.args[at + 1 :])
                    main = replaced(plan.main, call, replace(call, args=args))
                    yield plan.mutant("scratch", main=main)


def shorter_rings(plan: Planned) -> Iterator[Mutant]:
    """Rings of one row less, in main and in all functions that use them."""
    rings = {
        arg.buffer: param.shape[0]
        for call, callee in calls(plan)
        for arg, param in zip(call.args, callee.params, strict=True)
        if isinstance(arg, BufferView) and isinstance(param, Buffer) and is_ring(param, callee)
    }
    for ring, slots in rings.items():
        if not isinstance(slots, int) or slots < 2:
            continue
        main, callees = plan.main, dict(plan.callees)
        for call, callee in calls(plan):
            args = list(call.args)
            for at, arg in enumerate(call.args):
                if isinstance(arg, BufferView) and arg.buffer is ring:
                    param = callee.params[at]
                    assert isinstance(param, Buffer)
                    args[at] = replace(arg, shape=(slots - 1, *arg.shape[1:]))
                    callees[callee.name] = with_slots(callees[callee.name], param, slots - 1)
            main = replaced(main, call, replace(call, args=tuple(args)))
        yield plan.mutant("ring", main=main, callees=callees)


def is_ring(param: Buffer, callee: PrimFunc) -> bool:
    """Whether a parameter has fewer rows than what it stands for."""
    rows = callee.rows.get(param)
    slots = param.shape[0] if param.shape else 0
    return rows is not None and isinstance(slots, int) and slots < rows.height


def with_slots(callee: PrimFunc, param: Buffer, slots: int) -> PrimFunc:
    """A function whose parameter is a ring of so many rows; its contents keep their names."""
    new = replace(param, shape=(slots, *param.shape[1:]))
    changed = rewrite_function(callee, _Ring(param, new))
    rows = {new if p is param else p: access for p, access in callee.rows.items()}
    params = tuple(new if p is param else p for p in callee.params)
    scratch = new if callee.scratch is param else callee.scratch
    return replace(changed, params=params, rows=rows, scratch=scratch)


class _Ring(Rewriter):
    """Gives the accesses to a ring another number of slots."""

    def __init__(self, old: Buffer, new: Buffer) -> None:
        self.old, self.new = old, new

    def buffer(self, buffer: Buffer) -> Buffer:
        return self.new if buffer is self.old else buffer

    def slot(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        first = indices[0]
        if isinstance(first, Binary) and first.op is BinaryOp.FLOORMOD:
            first = first.a
        return (build.floormod(first, self.new.shape[0]), *indices[1:])

    def expr(self, e: Expr) -> Expr:
        if isinstance(e, Load) and e.buffer is self.old:
            return Load(self.new, self.slot(self.exprs(e.indices)))
        return self.expr_parts(e)

    def stmt(self, s: Stmt) -> Stmt:
        if isinstance(s, Store) and s.buffer is self.old:
            return Store(self.new, self.slot(self.exprs(s.indices)), self.expr(s.value))
        return self.stmt_parts(s)

    def _kernel_argument(self, argument: BufferArgument | Expr) -> BufferArgument | Expr:
        if isinstance(argument, BufferArgument) and argument.buffer is self.old:
            return BufferArgument(self.new, self.slot(self.exprs(argument.indices)))
        return super()._kernel_argument(argument)


def late_sums(plan: Planned) -> Iterator[Mutant]:
    """Sums that begin with their second row, and go on from whatever was there before."""
    for name, callee in plan.callees.items():
        later = rewrite_function(callee, _Late())
        if later is not callee:
            yield plan.mutant("late", callees={**plan.callees, name: later})


class _Late(Rewriter):
    """Takes the value before the first row for that before the second."""

    def expr(self, e: Expr) -> Expr:
        match e:
            case Select(Binary(BinaryOp.EQ, Var("y0") as row, IntImm(0)), first, later):
                return Select(build.eq(row, 1), first, later)
            case _:
                return self.expr_parts(e)


KINDS: Mapping[str, Callable[[Planned], Iterator[Mutant]]] = {
    "order": other_orders,
    "rows": other_rows,
    "twice": calls_made_twice,
    "scratch": scratch_elsewhere,
    "ring": shorter_rings,
    "late": late_sums,
}


def verdicts(seed: int) -> Counter[tuple[str, bool, bool]]:
    """Of some mutants of a plan: the kind, whether they are right, and whether accepted."""
    seen: Counter[tuple[str, bool, bool]] = Counter()
    plan = Planned(seed)
    for kind, made in KINDS.items():
        every = list(made(plan))
        for n in plan.rng.permutation(len(every))[:PER_PLAN]:
            right, accepted = plan.is_right(every[n]), plan.is_accepted(every[n])
            assert right or not accepted, (seed, kind, int(n))
            seen[kind, right, accepted] += 1
    return seen


def test_whatever_is_wrong_with_main_is_refused() -> None:
    """No mutant of any kind that computes something else is accepted, and there are such."""
    seen = sum((verdicts(seed) for seed in SEEDS), Counter())
    for kind in KINDS:
        assert seen[kind, False, False] > 0, (kind, seen)
    assert seen["twice", True, True] > 0, seen  # which most calls may be


LAYER = """
func layer(x: int8[2], y: int8[2], y0: int32 in 0..2, y1: int32 in 0..2):
  row_range y0 y1
  rows x 1 0 1 2
  rows y 1 0 1 2
  for row in range(y0, y1):
    y[row] = x[row]
"""


@pytest.mark.parametrize(
    ("first", "stop", "shared", "message"),
    [
        (-1, 2, False, "'y0' is -1, and its range is 0 to 2"),
        (0, 3, False, "'y1' is 3, and its range is 0 to 2"),
        (0, 2, True, "a call writes it, but only the caller may"),
    ],
)
def test_what_no_call_may_do_is_refused(first: int, stop: int, shared: bool, message: str) -> None:
    """Rows that there are not, and writes to an input in memory of the caller."""
    x, z = Buffer("x", (2,), DType.INT8), Buffer("z", (2,), DType.INT8, Scope.WORKSPACE)
    views = [BufferView(b, (2,), b.dtype) for b in (x, x if shared else z)]
    call = Invoke("layer", (*views, IntImm(first), IntImm(stop)))
    main = PrimFunc("main", (x,), Allocate(z, call))
    placed = relocate(main, [Buffer("workspace", (2,), DType.UINT8)], {z: (0, 0)})
    with pytest.raises(MemoryPlanError, match=message):
        check(main, placed, {"layer": parse_function(LAYER)}, [2], results=())


def test_two_arguments_of_one_buffer_are_two() -> None:
    """A layer that reads what it is to write, one element further on, is refused."""
    x = Buffer("x", (2,), DType.INT8)
    z = Buffer("z", (3,), DType.INT8, Scope.WORKSPACE)
    rows = (IntImm(0), IntImm(2))
    begin, later = (BufferView(z, (2,), z.dtype, at) for at in (0, 1))
    fill = Invoke("layer", (BufferView(x, (2,), x.dtype), begin, *rows))
    last = Invoke("layer", (BufferView(x, (2,), x.dtype), later, *rows))
    for views, is_refused in (((later, begin), False), ((begin, later), True)):
        body = Seq((fill, last, Invoke("layer", (*views, *rows))))
        main = PrimFunc("main", (x,), Allocate(z, body))
        placed = relocate(main, [Buffer("workspace", (3,), DType.UINT8)], {z: (0, 0)})
        with pytest.raises(MemoryPlanError) if is_refused else nullcontext():
            check(main, placed, {"layer": parse_function(LAYER)}, [3])
