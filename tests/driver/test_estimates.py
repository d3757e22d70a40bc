"""What planning counts of the workspace, and what placement then takes."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import microtir
from microtir import IRModule, resources
from microtir.config import CompilationConfig
from microtir.config.enums import Optimize
from microtir.plan.ir import Plan
from tests.driver.test_streaming import random_graph

M4 = CompilationConfig(targets="c -mcpu=cortex-m4")


def planned_and_placed(
    seed: int, goal: Optimize, *, joins: bool, workspace_io: bool
) -> tuple[Plan, IRModule]:
    """The plan of a random graph and what was made of it."""
    graph, _ = random_graph(seed, joins=joins)
    io = {"memory.use_workspace_io": workspace_io}
    config = M4.with_(optimize=goal, pass_config=io)
    module = microtir.lower(IRModule(graph=graph, config=config))
    return module.require_program("test").plan, module


@pytest.mark.parametrize("goal", [Optimize.RAM, Optimize.BALANCED])
@settings(deadline=None, max_examples=5)
@given(st.integers(0, 2**20), st.booleans(), st.booleans())
@example(29, False, False)  # alignment takes most of all
@example(3, False, False)
@example(16, True, True)
def test_planning_counts_no_less_than_placement_needs(
    goal: Optimize, seed: int, joins: bool, workspace_io: bool
) -> None:
    """A plan of so many bytes takes no more, but for what each buffer is aligned by.

    Placement finds overlaps that planning does not count, so that it may take less.
    """
    plan, module = planned_and_placed(seed, goal, joins=joins, workspace_io=workspace_io)
    assert module.model is not None and plan.size is not None
    memory = module.model.memory
    aligned = (memory.alignment - 1) * len(memory.placements)
    assert memory.workspace_size - memory.gap <= plan.size + aligned


def test_two_rows_a_call_do_not_decide_the_least_size() -> None:
    """Where one row needs less, what placement finds on top of planning is not given away."""
    model = resources.example("digits/digits_int8.tflite")
    module = microtir.frontend.from_tflite(model).with_configuration(M4.with_(optimize="ram"))
    program = microtir.lower(module).require_program("test")
    assert program.plan.size == 768
    assert program.placement.workspace_size == 736
