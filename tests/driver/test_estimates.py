"""What planning counts of the workspace, and what placement then takes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import microtir
from microtir import Executor, IRModule, memory
from microtir.config import CompilationConfig
from microtir.config.enums import Optimize
from microtir.memory.lifetimes import lifetimes
from microtir.module.program import Program
from microtir.support import resources
from tests.driver.test_streaming import random_graph
from tests.support.odd_graphs import odd_graph

M4 = CompilationConfig(targets="c -mcpu=cortex-m4")


@dataclass(frozen=True)
class Sizes:
    """Bytes of a workspace, as planning and placement see it.

    Args:
        planned: what planning has counted.
        placed: what placement takes.
        bound: what no placement is below, since so much is kept at one moment.
        together: the most that buffers of one moment have, each with all of its bytes.
        aligned: the most that alignment may take.
    """

    planned: int
    placed: int
    bound: int
    together: int
    aligned: int

    @staticmethod
    def of(module: IRModule) -> Sizes:
        """Read them off a program whose functions are not merged."""
        program, config = module.require_program("test"), module.require_config("test")
        plan = program.placement
        aligned = (plan.alignment - 1) * len(plan.placements)
        together = _together(program, config)
        return Sizes(program.plan.bytes, plan.workspace_size, plan.lower_bound, together, aligned)


def _together(program: Program, config: CompilationConfig) -> int:
    """Return the most bytes of buffers that hold anything at one moment of main."""
    callees = {f.name: f for f in program.functions}
    ports = memory.ports_of(program.named_main, len(program.graph.inputs), (), config)
    lives = lifetimes(program.named_main, callees, ports.inputs, ports.outputs)
    total = np.zeros(max((life.end for life in lives), default=1), np.int64)
    for life in lives:
        total[life.begin : life.end] += (life.low < life.high) * life.size
    return int(total.max())


def sizes_of(seed: int, goal: Optimize, *, joins: bool, workspace_io: bool) -> Sizes:
    """Compile a random graph."""
    graph, _ = random_graph(seed, joins=joins)
    io = {"memory.use_workspace_io": workspace_io}
    # A limit that is none: otherwise the plan may be one of speed, which counts no rows.
    config = M4.with_(optimize=goal, pass_config=io, budget={"ram": 1 << 20})
    return Sizes.of(microtir.lower(IRModule(graph=graph, config=config)))


@pytest.mark.parametrize("goal", [Optimize.RAM_LEAST, Optimize.BALANCED])
@settings(deadline=None, max_examples=5)
@given(st.integers(0, 2**20), st.booleans(), st.booleans())
@example(29, False, False)  # alignment takes most of all
@example(3, False, False)
@example(16, True, True)
def test_planning_counts_what_lives_at_one_time(
    goal: Optimize, seed: int, joins: bool, workspace_io: bool
) -> None:
    """No less than what is kept at one moment, and no more than all that is there at one.

    Between both lies what buffers share; planning counts that by rows, and no alignment.  What an
    operator in one call takes over from its input is not counted where memory is limited: a
    balanced plan may have such an operator and need less.
    """
    sizes = sizes_of(seed, goal, joins=joins, workspace_io=workspace_io)
    assert sizes.bound <= sizes.planned + sizes.aligned
    assert goal is Optimize.BALANCED or sizes.planned <= sizes.together


# Bytes that planning has counted and that placement takes, for a Cortex-M4.  They differ by what an
# output takes over from an input within a row, which is known once the functions are there.
WORKSPACES = {
    ("ad01_float", "ram-least"): (1024, 1024),
    ("ad01_float", "balanced"): (1024, 1024),
    ("ad01_int8", "ram-least"): (256, 256),
    ("ad01_int8", "balanced"): (256, 256),
    ("kws_hybrid", "ram-least"): (18176, 17148),
    ("kws_hybrid", "balanced"): (22272, 22272),
    ("kws_int8", "ram-least"): (4608, 4544),
    ("kws_int8", "balanced"): (7424, 7104),
    ("resnet8_float", "ram-least"): (51456, 49408),
    ("resnet8_float", "balanced"): (55040, 55040),
    ("resnet8_int8", "ram-least"): (12928, 12768),
    ("resnet8_int8", "balanced"): (16512, 16512),
    ("strww_int8", "ram-least"): (2688, 2688),
    ("strww_int8", "balanced"): (3968, 3840),
    ("vww_float", "ram-least"): (53760, 50688),
    ("vww_float", "balanced"): (63744, 60672),
    ("vww_int8", "ram-least"): (13440, 12672),
    ("vww_int8", "balanced"): (16568, 15808),
}
# Each goal, and integers, floats and both in one model, of every architecture.
OFTEN = {
    ("ad01_float", "balanced"), ("ad01_int8", "ram-least"), ("kws_hybrid", "ram-least"),
    ("kws_int8", "balanced"), ("resnet8_float", "ram-least"), ("resnet8_int8", "balanced"),
    ("strww_int8", "ram-least"), ("vww_int8", "ram-least"),
}  # fmt: skip
EACH = [
    pytest.param(
        *case, marks=[pytest.mark.model(case[0]), *[pytest.mark.soak_only] * (case not in OFTEN)]
    )
    for case in WORKSPACES
]
MODELS = [
    pytest.param(name, marks=[pytest.mark.model(name)])
    for name, goal in WORKSPACES
    if goal == "ram-least"
]
WITHIN_ROWS = 1.07  # what planning counts at most, times what placement takes


def of_model(models_dir: Path, name: str, target: str, goal: str, *, io: bool = False) -> Sizes:
    """Compile a reference model."""
    module = microtir.frontend.from_tflite(models_dir / f"{name}.tflite")
    config = CompilationConfig(
        targets=target, optimize=goal, pass_config={"memory.use_workspace_io": io}
    )
    return Sizes.of(microtir.lower(module.with_configuration(config)))


@pytest.mark.parametrize(("name", "goal"), EACH)
def test_planning_and_placement_of_models(models_dir: Path, name: str, goal: str) -> None:
    """A plan of so many bytes takes no more, and hardly less."""
    sizes = of_model(models_dir, name, "c -mcpu=cortex-m4", goal)
    assert (sizes.planned, sizes.placed) == WORKSPACES[name, goal]
    assert sizes.placed <= sizes.planned <= sizes.placed * WITHIN_ROWS
    assert sizes.planned <= sizes.together


@pytest.mark.soak_only
@pytest.mark.parametrize("target", ["c", "c -mcpu=cortex-m0", "c -mcpu=cortex-m55"])
@pytest.mark.parametrize("name", MODELS)
def test_the_least_memory_on_other_processors(models_dir: Path, name: str, target: str) -> None:
    """Kernels are others, and so is what they take over within a row."""
    sizes = of_model(models_dir, name, target, "ram-least")
    assert sizes.placed <= sizes.planned <= sizes.placed * WITHIN_ROWS


def test_two_rows_a_call_do_not_decide_the_least_size() -> None:
    """Where one row needs less, what placement finds on top of planning is not given away."""
    model = resources.example("digits/digits_int8.tflite")
    module = microtir.frontend.from_tflite(model).with_configuration(M4.with_(optimize="ram-least"))
    program = microtir.lower(module).require_program("test")
    assert program.plan.size == program.plan.bytes == 768
    assert program.placement.workspace_size == 736


@pytest.mark.parametrize("goal", Optimize)
def test_operators_of_several_outputs_are_ordered(goal: Optimize) -> None:
    """A split, whose outputs each take bytes, has its place in an order that is searched."""
    config = M4.with_(optimize=goal, executor=Executor("graph"))
    module = IRModule(graph=odd_graph(5)).with_configuration(config)
    program = microtir.lower(module).require_program("test")
    assert any(len(node.outputs) > 1 for node in program.graph.nodes)
