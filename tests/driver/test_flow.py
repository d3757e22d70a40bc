"""The road of a model: each stage once and in order, and nothing changes behind verification."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import pytest

import microtir
from microtir import driver
from microtir.codegen.program import make_program
from microtir.config import CompilationConfig
from microtir.config.enums import Optimize
from microtir.fit import budgets as fit
from microtir.lowering.stages import pipeline
from microtir.measure.functions import kernels_of
from microtir.tir.ir import PrimFunc
from tests.support.small_models import mixed_graph, module_of

# The function behind each stage of `stages.pipeline`, where it is called from, in order.
STAGES = (
    ("request", "microtir.driver.requested_graph"),
    ("graph", "microtir.driver.optimised_graph"),
    ("offload", "microtir.driver.offloaded_graph"),
    ("plan", "microtir.lowering.shared.plan"),
    ("lowering", "microtir.driver.emitted"),
    ("executor", "microtir.executor.aot.main"),
    ("memory", "microtir.memory.place"),
    ("merge", "microtir.driver.merged"),
    ("verification", "microtir.driver.verify_module"),
    ("measure", "microtir.driver.figures_of"),
    ("codegen", "microtir.codegen.emit"),
)


def config(goal: Optimize, **others: Any) -> CompilationConfig:
    """For a CPU with kernels of its own."""
    return CompilationConfig(targets="c -mcpu=cortex-m4", optimize=goal, **others)


def _noting(began: list[str], stage: str, real: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a stage, which notes that it begins."""

    def noting(*args: Any, **more: Any) -> Any:
        began.append(stage)
        return real(*args, **more)

    return noting


def watched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that grows by the name of each stage that begins."""
    began: list[str] = []
    for stage, path in STAGES:
        owner, _, name = path.rpartition(".")
        real = getattr(import_module(owner), name)
        monkeypatch.setattr(path, _noting(began, stage, real))
    return began


@pytest.mark.parametrize("goal", [Optimize.SPEED, Optimize.RAM_LEAST, Optimize.FLASH])
def test_every_stage_runs_once_and_in_order(
    goal: Optimize, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no limit, nothing is done twice to find something out."""
    began = watched(monkeypatch)
    told: list[str] = []
    microtir.build(module_of(mixed_graph()), config(goal), observe=lambda s, _: told.append(s))
    assert began == [stage for stage, _ in STAGES]
    assert told == [stage.name for stage in pipeline(config(goal))]


@pytest.mark.parametrize("goal", [Optimize.BALANCED, Optimize.RAM])
def test_goals_that_trade_compare_whole_programs(
    goal: Optimize, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The graph is lowered once; of the few programs that are compiled each goes the road."""
    began = watched(monkeypatch)
    microtir.build(module_of(mixed_graph()), config(goal))
    once = ["request", "graph", "offload"]
    road = [stage for stage, _ in STAGES if stage not in (*once, "plan", "codegen")]
    compiled = [stage for stage in began if stage != "plan"]
    programs = compiled.count("measure")
    assert compiled == [*once, *road * programs, "codegen"]
    assert 1 <= programs <= 5


@pytest.mark.parametrize("goal", Optimize)
def test_no_search_without_a_limit(goal: Optimize, monkeypatch: pytest.MonkeyPatch) -> None:
    """`fit` is for budgets."""
    searched: list[object] = []
    real = fit.search

    def search(*args: Any) -> Any:
        searched.append(args)
        return real(*args)

    monkeypatch.setattr(fit, "search", search)
    microtir.lower(module_of(mixed_graph()).with_configuration(config(goal)))
    assert not searched
    limited = config(goal, budget={"ram": 1 << 20})
    microtir.lower(module_of(mixed_graph()).with_configuration(limited))
    assert len(searched) == 1


@pytest.mark.parametrize("budget", [{}, {"flash": 1 << 20}], ids=["free", "limited"])
@pytest.mark.parametrize("goal", Optimize)
def test_every_function_that_is_printed_was_verified(
    goal: Optimize, budget: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What codegen prints are the functions that verification saw last, and their kernels."""
    seen: list[Sequence[PrimFunc]] = []
    real = driver.verify_module  # type: ignore[attr-defined]

    def verifying(functions: Sequence[PrimFunc]) -> None:
        seen.append(functions)
        real(functions)

    monkeypatch.setattr(driver, "verify_module", verifying)
    artifact = microtir.build(module_of(mixed_graph()), config(goal, budget=budget))
    chosen = [functions for functions in seen if tuple(functions) == artifact.module.functions]
    assert chosen, "the program that was printed is not one that was verified"
    legal = {*chosen[0], *(kernel for f in chosen[0] for kernel in kernels_of(f))}
    assert set(make_program(artifact.module).functions) <= legal


@pytest.mark.parametrize("goal", Optimize)
def test_the_module_is_its_program(goal: Optimize) -> None:
    """What the module says of itself is the program's, and is there once."""
    lowered = microtir.lower(module_of(mixed_graph()).with_configuration(config(goal)))
    program = lowered.require_program("test")
    assert lowered.functions == (*program.functions, program.main)
    assert lowered.constants is program.constants
    assert lowered.model is not None
    assert lowered.model.memory is program.placement
    assert lowered.model.decisions is program.decisions
    assert {f.name for fs in program.functions_of_operators().values() for f in fs} == {
        f.name for f in program.functions
    }
    assert program.figures is microtir.codegen.measured(lowered)
