"""Random plans, and whether a damaged one computes the same and is accepted by the checker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

import microtir
from microtir import CompilationConfig
from microtir.dtype import DType
from microtir.errors import MemoryPlanError, MicrotirError
from microtir.graph.ir import Graph
from microtir.memory.checker import check
from microtir.memory.lifetimes import Lifetime, lifetimes
from microtir.memory.place import relocate
from microtir.module.ir_module import IRModule
from microtir.rewrite.reference import execute
from microtir.tir.interpreter import Interpreter
from microtir.tir.ir import Allocate, Array, Buffer, For, Let, PrimFunc, Seq, Stmt
from tests.driver.test_streaming import constant_shape, random_graph
from tests.support.odd_graphs import odd_graph
from tests.support.small_models import sample_inputs

TARGETS = ("c", "c -mcpu=cortex-m4", "c -mcpu=x86-64")
Spots = Mapping[Buffer, int]


@dataclass(frozen=True)
class Mutant:
    """A main before placement, its layers, where its buffers go, and bytes of the workspace."""

    kind: str
    main: PrimFunc
    spots: Spots
    size: int
    callees: Mapping[str, PrimFunc]


class Planned:
    """A random graph, planned; choices come from one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.graph: Graph = odd_graph(seed) if seed % 2 else random_graph(seed, joins=True)[0]
        config = CompilationConfig(
            targets=TARGETS[seed % 3],
            optimize=("ram-least", "speed", "ram-least", "balanced")[seed % 4],
            pass_config={"memory.use_workspace_io": seed % 5 == 0},
        )
        module = microtir.lower(IRModule(graph=self.graph, config=config))
        self.main, self.placed_io = module.require_program("mutants").named_main, seed % 5 == 0
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

    def mutant(
        self,
        kind: str,
        *,
        main: PrimFunc | None = None,
        spots: Spots | None = None,
        size: int | None = None,
        callees: Mapping[str, PrimFunc] | None = None,
    ) -> Mutant:
        """Return the plan with something else in it."""
        return Mutant(
            kind, main or self.main, spots or self.spots, self.size if size is None else size,
            callees or self.callees,
        )  # fmt: skip

    def placed(self, mutant: Mutant) -> PrimFunc:
        """Return main with views of one workspace."""
        block = Buffer("workspace", (mutant.size,), DType.UINT8, alignment=self.alignment)
        return relocate(mutant.main, [block], {b: (0, at) for b, at in mutant.spots.items()})

    def is_accepted(self, mutant: Mutant) -> bool:
        """Return whether the checker accepts it."""
        at = {b: (0, offset) for b, offset in mutant.spots.items()}
        inputs = {b: at[b] for b in self.inputs if b in at}
        outputs = {b: at[b] for b in self.outputs if b in at}
        results = () if self.placed_io else self.outputs
        placed = self.placed(mutant)
        try:
            check(mutant.main, placed, mutant.callees, [mutant.size], inputs, outputs, results)
        except MemoryPlanError:
            return False
        return True

    def is_right(self, mutant: Mutant) -> bool:
        """Return whether its outputs are the reference's, whatever memory held before."""
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
            machine = Interpreter([*mutant.callees.values(), placed])
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


def replaced(main: PrimFunc, old: Stmt, new: Stmt) -> PrimFunc:
    """Return main with another statement in the place of one."""

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

    return replace(main, body=visit(main.body))
