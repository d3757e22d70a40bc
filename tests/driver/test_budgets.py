"""Budgets over random graphs: what fits is found, fits, and no plan that is known is faster."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

import microtir
from microtir import Executor, IRModule
from microtir.codegen import measured
from microtir.config import CompilationConfig
from microtir.config.enums import Optimize
from microtir.errors import MemoryPlanError
from microtir.graph.ir import Graph
from microtir.support import resources
from tests.support.seeds import seeds
from tests.support.streams import Garden

M4 = CompilationConfig(targets="c -mcpu=cortex-m4")
WORKSPACE_IO = M4.with_(pass_config={"memory.use_workspace_io": True})
BY_ROWS = M4.with_(executor=Executor("aot", {"row-fed-inputs": True, "row-drained-outputs": True}))


@dataclass(frozen=True)
class Found:
    """What a program takes, in bytes by the name of the budget, and its estimated instructions."""

    taken: dict[str, int]
    instructions: int


def found(graph: Graph, goal: Optimize, base: CompilationConfig = M4, **budget: int) -> Found:
    """What is made of a graph; a refusal is an error of the test."""
    config = base.with_(optimize=goal, budget=budget)
    module = microtir.lower(IRModule(graph=graph, config=config))
    model = module.model
    assert model is not None and model.memory.verified
    taken = {
        "ram": model.memory.workspace_size,
        "flash": measured(module).flash.bytes,
        "stack": measured(module).stacks.best.bytes,
    }
    return Found(taken, sum(d.instructions for d in model.decisions.values()))


def missing(graph: Graph, base: CompilationConfig, kind: str, size: int) -> tuple[int, int]:
    """What the refusal of a budget says: how many bytes are needed, and how many more these are."""
    config = base.with_(optimize=Optimize.SPEED, budget={kind: size})
    with pytest.raises(MemoryPlanError) as caught:
        microtir.lower(IRModule(graph=graph, config=config))
    needed = re.search(r"(\d+) bytes or more", caught.value.legal or "")
    more = re.search(r"(\d+) more than the budget", caught.value.what)
    assert needed and more, str(caught.value)
    return int(needed[1]), int(more[1])


@pytest.mark.parametrize(
    ("kind", "base"), [("ram", WORKSPACE_IO), ("ram", BY_ROWS), ("flash", M4), ("stack", M4)]
)
def test_the_least_is_exact_to_the_byte(kind: str, base: CompilationConfig) -> None:
    """The bytes that a refusal asks for are enough, and one less is refused by one byte."""
    graph = Garden(5).graph(3)
    least, more = missing(graph, base, kind, 1)
    assert more == least - 1
    assert found(graph, Optimize.SPEED, base, **{kind: least}).taken[kind] <= least
    assert missing(graph, base, kind, least - 1) == (least, 1)
    fastest = found(graph, Optimize.SPEED, base).taken[kind]
    assert fastest >= least
    if fastest > least:  # another plan fits one byte below
        assert found(graph, Optimize.SPEED, base, **{kind: fastest - 1}).taken[kind] < fastest


def test_ram_takes_no_more_than_a_budget_of_ram_can_have() -> None:
    """Placement finds an overlap here that planning does not count, in one of two least plans."""
    model = resources.example("digits/digits_int8.tflite")
    graph = microtir.frontend.from_tflite(model).graph
    assert graph is not None
    least = found(graph, Optimize.RAM_LEAST).taken["ram"]
    assert missing(graph, M4, "ram", least - 1) == (least, 1)


ALL = ("ram", "flash", "stack")


@pytest.mark.soak
@pytest.mark.parametrize(
    ("seed", "kinds"),
    [
        (4, ("ram",)),  # the fastest plan needs less than planning expects
        (14, ALL),  # a price passes over the plan of `balanced`
        # Only what `ram` comes to by comparing fits: planning expects more of it.
        (80689400100, ("ram",)),
        pytest.param(seeds(100, 1).start, ALL, marks=pytest.mark.soak_only, id="random"),
    ],
)
def test_a_budget_takes_the_fastest_plan_that_is_known_to_fit(
    seed: int, kinds: tuple[str, ...]
) -> None:
    """For what each goal takes of RAM, flash and stack: accepted, kept, and no slower."""
    garden = Garden(seed)
    graph = garden.graph(int(garden.rng.integers(3, 9)))
    while not graph.nodes:
        graph = garden.graph(4)
    unlimited = [found(graph, goal) for goal in Optimize]
    # Where flash counts, planning knows constants to the byte, and may take other kernels for it.
    weighed = [found(graph, goal, flash=1 << 20) for goal in Optimize] if "flash" in kinds else []
    for kind in kinds:
        known = weighed if kind == "flash" else unlimited
        for size in {max(plan.taken[kind], 1) for plan in known}:
            got = found(graph, Optimize.SPEED, M4, **{kind: size})
            assert got.taken[kind] <= size
            fitting = [plan.instructions for plan in known if plan.taken[kind] <= size]
            assert got.instructions <= min(fitting), (kind, size)


@pytest.mark.parametrize("goal", [Optimize.BALANCED, Optimize.RAM])
@pytest.mark.parametrize("kind", ["ram", "flash", "stack"])
def test_a_limit_that_is_far_away_changes_nothing(goal: Optimize, kind: str) -> None:
    """What a goal comes to by comparing programs is what it is where all of them fit, too."""
    graph = Garden(31).graph(5)
    assert found(graph, goal, M4, **{kind: 1 << 20}) == found(graph, goal)
