"""The checker against execution: whatever is wrong with a placement, or with main, is refused.

Random plans are damaged in every way in which planning could be wrong.  Each mutant is run by the
interpreter on poisoned memory; one whose outputs differ must not be accepted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from microtir.dtype import DType
from microtir.errors import MemoryPlanError
from microtir.memory.checker import check
from microtir.memory.place import relocate
from microtir.tir import build
from microtir.tir.ir import (
    Allocate,
    Buffer,
    BufferView,
    Expr,
    For,
    IntImm,
    Invoke,
    PrimFunc,
    Scope,
    Seq,
)
from microtir.tir.text import parse_function
from microtir.tir.visitor import walk
from tests.driver.test_streaming import constant_shape
from tests.support.mutants import Mutant, Planned, replaced

PER_PLAN = 14


def mutants(plan: Planned) -> Iterator[Mutant]:
    """The plan, damaged in one place each."""
    yield from moved(plan)
    for main in other_mains(plan):
        yield plan.mutant("main", main=main)


def moved(plan: Planned) -> Iterator[Mutant]:
    """Buffers at other places, and less memory."""
    yield plan.mutant("short", size=plan.size - 1)
    ends = {life.buffer: life.size for life in plan.lives}
    for life in plan.lives:
        step = max(1, life.alignment)
        row = max(step, life.size // 4 // step * step)
        somewhere = int(plan.rng.integers(plan.size)) // step * step
        for distance in (step, -step, row, -row, somewhere - plan.spots[life.buffer]):
            offset = plan.spots[life.buffer] + distance
            if offset >= 0 and distance:
                spots = {**plan.spots, life.buffer: offset}
                yield plan.mutant("moved", spots=spots, size=max(plan.size, offset + life.size))
    for _ in range(len(ends) > 1):
        a, b = (list(ends)[n] for n in plan.rng.choice(len(ends), 2, replace=False))
        spots = {**plan.spots, a: plan.spots[b], b: plan.spots[a]}
        size = max(spots[buffer] + bytes_ for buffer, bytes_ in ends.items())
        yield plan.mutant("swapped", spots=spots, size=max(plan.size, size))


def other_mains(plan: Planned) -> Iterator[PrimFunc]:
    """Loops with other ends, calls left out, of other rows, or in another order."""
    for node in walk(plan.main):
        match node:
            case For(_, start, stop, _):
                yield replaced(plan.main, node, replace(node, start=build.add(start, 1)))
                yield replaced(plan.main, node, replace(node, stop=build.sub(stop, 1)))
            case Invoke(_, args):
                yield replaced(plan.main, node, Seq(()))
                if len(args) > 2 and isinstance(args[-2], Expr) and isinstance(args[-1], Expr):
                    later = (*args[:-2], build.add(args[-2], 1), args[-1])
                    yield replaced(plan.main, node, replace(node, args=later))
                    earlier = (*args[:-1], build.sub(args[-1], 1))
                    yield replaced(plan.main, node, replace(node, args=earlier))
            case Seq((_, _, *_) as statements):
                at = int(plan.rng.integers(len(statements) - 1))
                first, second = statements[at : at + 2]
                swapped = (*statements[:at], second, first, *statements[at + 2 :])
                yield replaced(plan.main, node, Seq(swapped))
            case _:
                pass


def verdicts(seed: int) -> Counter[tuple[str, bool, bool]]:
    """Of some mutants of a plan: the kind, whether they are right, and whether accepted."""
    plan = Planned(seed)
    seen: Counter[tuple[str, bool, bool]] = Counter()
    if not plan.size:
        return seen
    every = list(mutants(plan))
    for n in plan.rng.permutation(len(every))[:PER_PLAN]:
        mutant = every[n]
        right, accepted = plan.is_right(mutant), plan.is_accepted(mutant)
        assert right or not accepted, (seed, mutant.kind, mutant.spots)
        seen[mutant.kind, right, accepted] += 1
    return seen


@pytest.mark.parametrize("first", [0, 6])
def test_no_mutant_that_computes_something_else_is_accepted(first: int) -> None:
    """Of those that are right, most are accepted, or the checker would say no to everything."""
    seen = sum((verdicts(seed) for seed in range(first, first + 6)), Counter())
    wrong = sum(count for (_, right, _), count in seen.items() if not right)
    kept = sum(count for (_, right, accepted), count in seen.items() if right and accepted)
    harmless = sum(count for (_, right, _), count in seen.items() if right)
    assert wrong > 20 and 2 * kept > harmless > 5, seen


TWO_PASSES = """
func layer(x: int8[2], y: int8[2], scratch: int8[4], y0: int32 in 0..2, y1: int32 in 0..2):
  row_range y0 y1
  rows x 1 0 1 2
  rows y 1 0 1 2
  scratch scratch
  for n in range(y0, y1):
    scratch[n - y0] = x[n]
  for row in range(y0, y1):
    y[row] = scratch[row - y0]
"""


@pytest.mark.parametrize(("offset", "accepted"), [(0, False), (1, False), (2, True), (4, True)])
def test_rows_of_a_call_use_scratch_together(offset: int, accepted: bool) -> None:
    """The first row's output over what the second row has left there is refused."""
    layer = parse_function(TWO_PASSES)
    x, y = Buffer("x", (2,), DType.INT8), Buffer("y", (2,), DType.INT8, Scope.WORKSPACE)
    scratch = Buffer("scratch", (4,), DType.INT8, Scope.WORKSPACE)
    views = [BufferView(b, constant_shape(b), b.dtype) for b in (x, y, scratch)]
    call = Invoke("layer", (*views, IntImm(0), IntImm(2)))
    main = PrimFunc("main", (x,), Allocate(y, Allocate(scratch, call)))
    block = Buffer("workspace", (6,), DType.UINT8)
    placed = relocate(main, [block], {y: (0, offset), scratch: (0, 0)})
    if accepted:
        check(main, placed, {"layer": layer}, [6])
        return
    with pytest.raises(MemoryPlanError, match="written over another argument"):
        check(main, placed, {"layer": layer}, [6])
