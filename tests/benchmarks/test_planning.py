"""Planning of long models: recorded below its limits, and work that grows with what is new."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from benchmarks import planning
from benchmarks.long_model import long_model
from microtir import driver
from microtir.config import CompilationConfig, Optimize, Target
from microtir.graph.ir import Graph, Node
from microtir.kernels import candidates
from microtir.plan import nest_simulations, plan
from microtir.plan.ir import Candidate, PlanConstraints, PlannedOperator

_CONFIG = CompilationConfig.from_target(Target("c -mcpu=cortex-m4"))


def test_recorded_times_keep_to_the_limits() -> None:
    """2 s for the largest reference model, 10 s with the solver, 30 s for 500 operators."""
    recorded = planning.read_recorded()
    limits = {(planning.MODEL, "greedy"): 2.0, (planning.MODEL, "optimal"): 10.0}
    for model, goal, placement in planning.ways():
        seconds = recorded[f"{model} {goal.value} {placement}"]
        assert seconds.planning < limits.get((model, placement), 30.0)


def played(operators: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """How many nests are looked at for a plan, and how many of them are played through."""
    asked: list[int] = []
    made: list[int] = []
    of, simulation = nest_simulations.NestSimulations.of, nest_simulations._simulated

    def counted_of(
        self: nest_simulations.NestSimulations, nest: Sequence[PlannedOperator], together: int
    ) -> nest_simulations.NestSimulation:
        asked.append(together)
        return of(self, nest, together)

    def counted_simulation(
        nest: Sequence[PlannedOperator], together: int
    ) -> nest_simulations.NestSimulation:
        made.append(together)
        return simulation(nest, together)

    with monkeypatch.context() as patch:
        patch.setattr(nest_simulations.NestSimulations, "of", counted_of)
        patch.setattr(nest_simulations, "_simulated", counted_simulation)
        module = long_model(operators)
        assert isinstance(module.graph, Graph)
        known: dict[Node, tuple[Candidate, ...]] = {}

        def offered(node: Node) -> tuple[Candidate, ...]:
            if node not in known:
                known[node] = candidates(node, _CONFIG)
            return known[node]

        plan(module.graph, offered, PlanConstraints(Optimize.RAM_LEAST))
    return len(asked), len(made)


def test_nests_of_one_shape_are_played_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the blocks ask about twice the nests, and play through far fewer new ones."""
    asked, made = played(116, monkeypatch)
    asked_more, made_more = played(212, monkeypatch)
    assert asked_more < 2.2 * asked
    assert made < asked / 2
    assert made_more / made < 0.85 * asked_more / asked


def test_the_long_model_is_lowered() -> None:
    """It is a model like any other: verified, planned, placed and proven."""
    module = long_model(68).with_configuration(_CONFIG.with_(optimize=Optimize.RAM_LEAST))
    lowered = driver.lower(module)
    assert lowered.model is not None
    assert lowered.model.memory.verified
