"""Budgets over random graphs: what fits is found, fits, and no plan that is known is faster."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import example, given, settings
from hypothesis import strategies as st

import microtir
from microtir import IRModule
from microtir.codegen import flash_of, stack_of
from microtir.config import CompilationConfig
from microtir.config.enums import Optimize
from microtir.graph.ir import Graph
from tests.support.streams import Garden

M4 = CompilationConfig(targets="c -mcpu=cortex-m4")


@dataclass(frozen=True)
class Found:
    """What a program takes, in bytes by the name of the budget, and its estimated instructions."""

    taken: dict[str, int]
    instructions: int


def found(graph: Graph, goal: Optimize, **budget: int) -> Found:
    """What is made of a graph; a refusal is an error of the test."""
    config = M4.with_(optimize=goal, budget=budget)
    module = microtir.lower(IRModule(graph=graph, config=config))
    model = module.model
    assert model is not None and model.memory.verified
    taken = {
        "ram": model.memory.workspace_size,
        "flash": flash_of(module).bytes,
        "stack": stack_of(module).bytes,
    }
    return Found(taken, sum(d.instructions for d in model.decisions.values()))


@settings(deadline=None, max_examples=1)
@given(st.integers(0, 2**20))
@example(4)  # the fastest plan needs less than planning expects
@example(14)  # a price passes over the plan of `balanced`
def test_a_budget_takes_the_fastest_plan_that_is_known_to_fit(seed: int) -> None:
    """For what each goal takes of RAM, flash and stack: accepted, kept, and no slower."""
    garden = Garden(seed)
    graph = garden.graph(int(garden.rng.integers(3, 9)))
    while not graph.nodes:
        graph = garden.graph(4)
    known = [found(graph, goal) for goal in Optimize]
    for kind in ("ram", "flash", "stack"):
        for size in {max(plan.taken[kind], 1) for plan in known}:
            got = found(graph, Optimize.SPEED, **{kind: size})
            assert got.taken[kind] <= size
            fitting = [plan.instructions for plan in known if plan.taken[kind] <= size]
            assert got.instructions <= min(fitting), (kind, size)
