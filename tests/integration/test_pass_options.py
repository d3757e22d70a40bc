"""Options of passes: what each changes in the C, and that it changes no result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

import microtir
from microtir import host, memory, te
from microtir.config import CompilationConfig, Optimize, Placement
from microtir.dtype import DType
from microtir.errors import TirError
from microtir.graph.ir import Graph
from microtir.plan import plan
from microtir.plan.ir import Plan, PlanConstraints
from microtir.plan.planner import CandidatesOf
from microtir.schedule import Schedule
from microtir.tir.ir import Expr, FloatImm, For, PrimFunc, Stmt, Var
from microtir.tir.memory_plan import MemoryPlan
from microtir.tir.passes import Pass, Simplify
from microtir.tir.visitor import Rewriter, rewrite_function
from tests.support.program_text import program_text
from tests.support.small_models import (
    branching_graph,
    module_of,
    quantised_graph,
    reference_outputs,
    sample_inputs,
    tiny_graph,
)

BASE = CompilationConfig(targets="c")


def marked() -> Schedule:
    """y[i, j] = 2 x[i, j] with the inner loop marked for unrolling."""
    x = te.placeholder((3, 4), DType.FLOAT32, "x")
    y = te.compute((3, 4), lambda i, j: x[i, j] * 2.0, "y", axes=("row", "col"))
    schedule = te.create_schedule(y)
    schedule.unroll(schedule.loop(y, "col"))
    return schedule


def unmarked() -> Schedule:
    """Return the same, with no loop marked."""
    x = te.placeholder((3, 4), DType.FLOAT32, "x")
    y = te.compute((3, 4), lambda i, j: x[i, j] * 2.0, "y", axes=("row", "col"))
    return te.create_schedule(y)


@pytest.mark.parametrize(
    ("schedule", "options", "loops"),
    [
        (marked, {}, 1),
        (marked, {"tir.disable_unroll": True}, 2),
        (unmarked, {}, 2),
        (unmarked, {"tir.disable_unroll": True}, 2),
        (unmarked, {"tir.unroll_max_extent": 3}, 2),
        (unmarked, {"tir.unroll_max_extent": 4}, 1),
        (marked, {"tir.unroll_max_extent": 1}, 1),
    ],
)
def test_unrolling_is_what_the_options_say(
    schedule: Callable[[], Schedule], options: dict[str, object], loops: int
) -> None:
    """Marked loops are copied unless that is disabled; short innermost ones up to the extent."""
    artifact = microtir.build(schedule(), BASE.with_(pass_config=options))
    assert artifact.source("default.c").count("for (") == loops
    data, result = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros((3, 4), np.float32)
    host.load(artifact, opt_level=0)["main"](data, result)
    np.testing.assert_array_equal(result, data * 2)


@dataclass(frozen=True, slots=True)
class Wrong:
    """A faulty pass: every float literal becomes another one."""

    name: ClassVar[str] = "wrong"

    def __call__(self, func: PrimFunc) -> PrimFunc:
        return rewrite_function(func, _Literals())


class _Literals(Rewriter):
    def expr(self, e: Expr) -> Expr:
        e = self.expr_parts(e)
        return FloatImm(3.0, e.dtype) if isinstance(e, FloatImm) else e


@dataclass(frozen=True, slots=True)
class Unbound:
    """A faulty pass: loops count a variable that their bodies do not know."""

    name: ClassVar[str] = "unbound"

    def __call__(self, func: PrimFunc) -> PrimFunc:
        return rewrite_function(func, _Variables())


class _Variables(Rewriter):
    def stmt(self, s: Stmt) -> Stmt:
        s = self.stmt_parts(s)
        return replace(s, var=Var("fresh")) if isinstance(s, For) else s


def with_passes(monkeypatch: pytest.MonkeyPatch, *passes: Pass) -> None:
    """Have the driver run these passes instead of its own."""

    def pipeline(*_options: object) -> tuple[Pass, ...]:
        return passes

    monkeypatch.setattr("microtir.tir.passes.pipeline", pipeline)


def test_replay_names_the_first_pass_that_changes_a_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without the option a faulty pass goes unnoticed; with it, the error names it."""
    with_passes(monkeypatch, Simplify(), Wrong(), Simplify())
    microtir.build(unmarked(), BASE)
    checked = BASE.with_(pass_config={"tir.replay_each_pass": True})
    with pytest.raises(TirError, match="pass 'wrong' changed a result") as caught:
        microtir.build(unmarked(), checked)
    assert "'y' at (0, 0)" in str(caught.value)
    with_passes(monkeypatch, Simplify(), Simplify())
    microtir.build(unmarked(), checked)


def test_verify_names_the_pass_that_breaks_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last verification finds a broken function in any case; the option says whose fault."""
    with_passes(monkeypatch, Unbound())
    with pytest.raises(TirError) as caught:
        microtir.build(unmarked(), BASE)
    assert "unbound" not in str(caught.value)
    with pytest.raises(TirError, match="the pass 'unbound' broke a rule of TIR"):
        microtir.build(unmarked(), BASE.with_(pass_config={"tir.verify_each_pass": True}))


def test_checking_every_pass_changes_nothing() -> None:
    """The options that only check leave the program as it is, on a model of several layers."""
    plain = microtir.build(module_of(tiny_graph()), BASE)
    for key in ("tir.verify_each_pass", "tir.replay_each_pass"):
        checked = microtir.build(module_of(tiny_graph()), BASE.with_(pass_config={key: True}))
        assert program_text(checked) == program_text(plain)


def test_both_placements_compute_the_same_and_exact_is_not_larger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The option reaches placement; tests/memory has a program where only the search is best."""
    model = branching_graph()
    inputs = sample_inputs(model)
    (expected,) = reference_outputs(model, inputs).values()
    asked: list[Placement] = []
    place = memory.place

    def recording(
        main: PrimFunc,
        callees: Mapping[str, PrimFunc],
        pools: Sequence[memory.Pool],
        placement: Placement,
        ports: memory.Ports | None,
    ) -> tuple[PrimFunc, MemoryPlan]:
        asked.append(placement)
        return place(main, callees, pools, placement, ports)

    monkeypatch.setattr("microtir.memory.place", recording)
    sizes = {}
    for placement in Placement:
        config = BASE.with_(pass_config={"memory.placement": placement})
        artifact = microtir.build(module_of(model), config)
        facts = artifact.metadata.memory
        assert facts is not None and facts.verified
        sizes[placement] = facts.workspace_size
        np.testing.assert_array_equal(host.load(artifact, opt_level=0).run(inputs)["y"], expected)
    assert list(dict.fromkeys(asked)) == list(Placement)
    assert sizes[Placement.EXACT] <= sizes[Placement.GREEDY]


@pytest.mark.parametrize("goal", Optimize)
def test_the_goal_reaches_the_planner(goal: Optimize, monkeypatch: pytest.MonkeyPatch) -> None:
    """What candidates are ranked by is the option; tests/plan says what each goal prefers."""
    asked: list[Optimize] = []

    def recording(
        graph: Graph,
        candidates_of: CandidatesOf,
        given: PlanConstraints,
        **others: Any,
    ) -> Plan:
        asked.append(given.goal)
        return plan(graph, candidates_of, given, **others)

    monkeypatch.setattr("microtir.lowering.shared.plan", recording)
    microtir.build(module_of(tiny_graph()), BASE.with_(optimize=goal))
    assert goal in asked
    # Those that pay for memory are compared with what is faster, and with what takes less.
    trade = goal in (Optimize.BALANCED, Optimize.RAM)
    assert trade or set(asked) == {goal}


def test_every_goal_computes_the_same() -> None:
    """Goals change kernels, memory and speed, never a result; `ram` needs no more than others."""
    model = quantised_graph()
    inputs = sample_inputs(model)
    (expected,) = reference_outputs(model, inputs).values()
    sizes = {}
    for goal in Optimize:
        artifact = microtir.build(module_of(model), BASE.with_(optimize=goal))
        facts = artifact.metadata.memory
        assert facts is not None
        sizes[goal] = facts.workspace_size
        result = host.load(artifact, opt_level=0).run(inputs)["scores"]
        np.testing.assert_array_equal(result, expected)
    assert sizes[Optimize.RAM_LEAST] == min(sizes.values())
