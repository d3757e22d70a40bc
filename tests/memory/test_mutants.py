"""The checker against execution: whatever is wrong with a placement, or with main, is refused.

Random plans are damaged in every way in which planning could be wrong.  Each mutant is run by the
interpreter on poisoned memory; one whose outputs differ must not be accepted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig
from microtir.errors import MemoryPlanError, MicrotirError
from microtir.graph.ir import Graph
from microtir.graph.reference import execute
from microtir.ir_module import IRModule
from microtir.memory.checker import check
from microtir.memory.lifetimes import Lifetime, lifetimes
from microtir.memory.place import relocate
from microtir.tir import build
from microtir.tir.dtype import DType
from microtir.tir.interpreter import Interpreter
from microtir.tir.ir import (
    Allocate,
    Array,
    Buffer,
    BufferView,
    Expr,
    For,
    IntImm,
    Invoke,
    Let,
    PrimFunc,
    Scope,
    Seq,
    Stmt,
)
from microtir.tir.text import parse_function
from microtir.tir.visitor import walk
from tests.driver.test_streaming import constant_shape, random_graph
from tests.support.odd_graphs import odd_graph
from tests.support.small_models import sample_inputs

PER_PLAN = 14
TARGETS = ("c", "c -mcpu=cortex-m4", "c -mcpu=x86-64")
Spots = Mapping[Buffer, int]


@dataclass(frozen=True)
class Mutant:
    """A main before placement, where its buffers go, and bytes of the workspace."""

    kind: str
    main: PrimFunc
    spots: Spots
    size: int


class Planned:
    """A random graph, planned; choices come from one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.graph: Graph = odd_graph(seed) if seed % 2 else random_graph(seed, joins=True)[0]
        mains: list[PrimFunc] = []

        def observe(stage: str, result: object) -> None:
            if stage == "executor":
                assert isinstance(result, PrimFunc)
                mains.append(result)

        config = CompilationConfig(
            targets=TARGETS[seed % 3],
            optimize=("ram", "speed", "ram", "balanced")[seed % 4],
            pass_config={"memory.use_workspace_io": seed % 5 == 0},
        )
        module = microtir.lower(IRModule(graph=self.graph, config=config), observe=observe)
        self.main, self.placed_io = mains[-1], seed % 5 == 0
        self.callees = {f.name: f for f in module.functions[:-1]}
        buffers = [p for p in self.main.params if isinstance(p, Buffer)]
        split = len(self.graph.inputs)
        self.inputs, self.outputs = buffers[:split], buffers[split:]
        ports = (self.inputs, self.outputs) if self.placed_io else ((), ())
        self.lives: list[Lifetime] = list(lifetimes(self.main, self.callees, *ports))
        assert module.model is not None
        memory = module.model.memory
        (pool,) = memory.pools
        self.alignment, self.size = pool.alignment, pool.size
        self.spots = {
            life.buffer: p.offset for life, p in zip(self.lives, memory.placements, strict=True)
        }

    def placed(self, mutant: Mutant) -> PrimFunc:
        """Main with views of one workspace."""
        block = Buffer("workspace", (mutant.size,), DType.UINT8, alignment=self.alignment)
        return relocate(mutant.main, [block], {b: (0, at) for b, at in mutant.spots.items()})

    def is_accepted(self, mutant: Mutant) -> bool:
        """What the checker says."""
        at = {b: (0, offset) for b, offset in mutant.spots.items()}
        inputs = {b: at[b] for b in self.inputs if b in at}
        outputs = {b: at[b] for b in self.outputs if b in at}
        results = () if self.placed_io else self.outputs
        placed = self.placed(mutant)
        try:
            check(mutant.main, placed, self.callees, [mutant.size], inputs, outputs, results)
        except MemoryPlanError:
            return False
        return True

    def is_right(self, mutant: Mutant) -> bool:
        """Whether its outputs are the reference's, whatever memory held before."""
        return all(self._runs(mutant, fill) for fill in (0xA5, 0x5A))

    def _runs(self, mutant: Mutant, fill: int) -> bool:
        data = sample_inputs(self.graph, fill)
        memory = np.full(mutant.size, fill, np.uint8)
        arrays: list[Array] = []
        for tensor, buffer in zip(self.graph.inputs, self.inputs, strict=True):
            arrays.append(data[tensor.name].reshape(constant_shape(buffer)))
            if self.placed_io:
                place = memory[mutant.spots[buffer] :][: tensor.type.bytes]
                if place.size < tensor.type.bytes:
                    return False
                place[:] = arrays[-1].reshape(-1).view(np.uint8)
        for buffer in self.outputs:
            raw = np.full(int(np.prod(constant_shape(buffer))) * buffer.dtype.bytes, fill, np.uint8)
            arrays.append(raw.view(buffer.dtype.value).reshape(constant_shape(buffer)))
        placed = self.placed(mutant)
        try:
            machine = Interpreter([*self.callees.values(), placed])
            machine.run(placed.name, [*arrays, memory])
        except (MicrotirError, IndexError, ValueError):
            return False
        results = arrays[len(self.inputs) :]
        expected = execute(self.graph, data)
        for tensor, buffer, result in zip(self.graph.outputs, self.outputs, results, strict=True):
            if self.placed_io:
                part = memory[mutant.spots[buffer] :][: tensor.type.bytes]
                if part.size < tensor.type.bytes:
                    return False
                result = part.view(tensor.dtype.value)
            tolerance = 1e-5 * tensor.dtype.is_float
            if not np.allclose(result.reshape(tensor.shape), expected[tensor.name], tolerance, 0):
                return False
        return True

    def mutants(self) -> Iterator[Mutant]:
        """The plan, damaged in one place each."""
        yield from self._moved()
        for main in self._other_mains():
            yield Mutant("main", main, self.spots, self.size)

    def _moved(self) -> Iterator[Mutant]:
        """Buffers at other places, and less memory."""
        yield Mutant("short", self.main, self.spots, self.size - 1)
        ends = {life.buffer: life.size for life in self.lives}
        for life in self.lives:
            step = max(1, life.alignment)
            row = max(step, life.size // 4 // step * step)
            somewhere = int(self.rng.integers(self.size)) // step * step
            for distance in (step, -step, row, -row, somewhere - self.spots[life.buffer]):
                offset = self.spots[life.buffer] + distance
                if offset >= 0 and distance:
                    spots = {**self.spots, life.buffer: offset}
                    yield Mutant("moved", self.main, spots, max(self.size, offset + life.size))
        for _ in range(len(ends) > 1):
            a, b = (list(ends)[n] for n in self.rng.choice(len(ends), 2, replace=False))
            spots = {**self.spots, a: self.spots[b], b: self.spots[a]}
            size = max(spots[buffer] + bytes_ for buffer, bytes_ in ends.items())
            yield Mutant("swapped", self.main, spots, max(self.size, size))

    def _other_mains(self) -> Iterator[PrimFunc]:
        """Loops with other ends, calls left out, of other rows, or in another order."""
        for node in walk(self.main):
            match node:
                case For(_, start, stop, _):
                    yield self._with(node, replace(node, start=build.add(start, 1)))
                    yield self._with(node, replace(node, stop=build.sub(stop, 1)))
                case Invoke(_, args):
                    yield self._with(node, Seq(()))
                    if len(args) > 2 and isinstance(args[-2], Expr) and isinstance(args[-1], Expr):
                        later = (*args[:-2], build.add(args[-2], 1), args[-1])
                        yield self._with(node, replace(node, args=later))
                        earlier = (*args[:-1], build.sub(args[-1], 1))
                        yield self._with(node, replace(node, args=earlier))
                case Seq((_, _, *_) as statements):
                    at = int(self.rng.integers(len(statements) - 1))
                    first, second = statements[at : at + 2]
                    swapped = (*statements[:at], second, first, *statements[at + 2 :])
                    yield self._with(node, Seq(swapped))
                case _:
                    pass

    def _with(self, old: Stmt, new: Stmt) -> PrimFunc:
        def visit(s: Stmt) -> Stmt:
            match s:
                case _ if s is old:
                    return new
                case For() | Let() | Allocate():
                    return replace(s, body=visit(s.body))
                case Seq(statements):
                    return Seq(tuple(visit(inner) for inner in statements))
                case _:
                    return s

        return replace(self.main, body=visit(self.main.body))


def verdicts(seed: int) -> Counter[tuple[str, bool, bool]]:
    """Of some mutants of a plan: the kind, whether they are right, and whether accepted."""
    plan = Planned(seed)
    seen: Counter[tuple[str, bool, bool]] = Counter()
    if not plan.size:
        return seen
    every = list(plan.mutants())
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
