"""Tuning: rounds that cover every kernel, records that planning goes by, and refusals."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import microtir
from microtir.config import CompilationConfig
from microtir.errors import DataFileError
from microtir.kernels import candidates
from microtir.module.ir_module import IRModule
from microtir.plan.measured import Cost, Key, Measured, signature
from microtir.search import tune
from tests.support.small_models import module_of, quantised_graph

M4 = CompilationConfig(targets="c -mcpu=cortex-m4", optimize="speed")
NONE = Measured(str(M4.primary_target()), {})


def offered(module: IRModule) -> set[Key]:
    """Every kernel that could compute an operator of a model."""
    assert module.graph is not None
    return {
        Key(signature(node), c.kernel)
        for node in module.graph.nodes
        for c in candidates(node, M4)
        if not c.is_view and not c.accumulates
    }


def chosen(module: IRModule, config: CompilationConfig) -> dict[str, str]:
    """Return the kernel of each operator in the plan."""
    plan = microtir.lower(module.with_configuration(config)).require_program("test").plan
    return {signature(op.node): op.candidate.kernel for op in plan.operators}


def test_rounds_measure_every_kernel_once() -> None:
    """As many rounds as the richest operator has kernels; none where all is known."""
    module = module_of(quantised_graph())
    todo = list(tune.rounds(module, M4, NONE))
    keys = [key for one in todo for key in one.keys]
    assert len(keys) == len(set(keys))
    assert set(keys) >= {k for k in offered(module) if k.kernel in ("conv_s8_2x4_dsp", "direct")}
    known = NONE.joined(dict.fromkeys(keys, Cost(5)))
    assert list(tune.rounds(module, M4, known)) == []
    fewer = NONE.joined({key: Cost(5) for key in keys if key not in todo[-1].keys})
    (last,) = tune.rounds(module, M4, fewer)
    assert last.keys == todo[-1].keys


def test_plans_go_by_records(tmp_path: Path) -> None:
    """What was measured to be fastest is taken, whatever the estimates say."""
    module = module_of(quantised_graph())
    usual = chosen(module, M4)
    (operator, kernel), *_ = [(o, k) for o, k in usual.items() if k.startswith("dense")]
    path = tmp_path / "records.json"
    costs = {Key(operator, kernel): Cost(10_000), Key(operator, "direct"): Cost(10)}
    path.write_text(NONE.joined(costs).to_text())
    tuned = chosen(module, M4.with_(tuning_records=str(path)))
    assert tuned == {**usual, operator: "direct"}


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    """The same costs, and the same bytes whatever the order."""
    costs = {Key("b", "conv_s8_2x4_dsp"): Cost(2), Key("a", "direct"): Cost(1, 3)}
    path = tmp_path / "records.json"
    path.write_text(NONE.joined(costs).to_text())
    assert Measured.read(path, NONE.target).costs == costs
    assert NONE.joined(dict(reversed(costs.items()))).to_text() == path.read_text()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("microtir tuning records", "shopping list"), "contains no tuning records"),
        (('"version": 1', '"version": 9'), "have version 9"),
        (("cortex-m4", "cortex-m7"), "for the target 'c -mcpu=cortex-m7'"),
        (
            ('"conv_s8_2x4_dsp"', '"gems"'),
            "record 0 names 'gems', which no longer exists",
        ),
        (('"instructions": 2', '"instructions": -2'), "record 0 has no number"),
        (('"cycles": 3', '"cycles": true'), "record 0 has cycles that are not numbers"),
        (("{", "["), "not JSON"),
    ],
)
def test_wrong_records_are_refused(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    """Each says what is wrong, and where."""
    path = tmp_path / "records.json"
    path.write_text(
        NONE.joined({Key("b", "conv_s8_2x4_dsp"): Cost(2, 3)}).to_text().replace(*change, 1)
    )
    with pytest.raises(DataFileError, match=message) as caught:
        microtir.lower(
            module_of(quantised_graph()).with_configuration(M4.with_(tuning_records=str(path)))
        )
    assert caught.value.where == str(path)


def test_missing_records_are_named(tmp_path: Path) -> None:
    """A file that is not there is an error of its own."""
    with pytest.raises(DataFileError, match="cannot be read: No such file"):
        Measured.read(tmp_path / "none.json", NONE.target)


def pretended(one: tune.Round, board: str, timeout: float) -> Mapping[Key, Cost]:
    """Measures nothing."""
    assert (board, timeout) == ("mps2_an386", 9.0)
    return {key: Cost(len(key.operator)) for key in one.keys}


def cluster() -> Executor:
    """Return a scheduler with a worker in this process, addressed like any other."""
    from distributed import Client  # slow to load, in every worker

    client = Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None)
    executor: Executor = client.get_executor()
    return executor


@pytest.mark.parametrize("make", [lambda: ThreadPoolExecutor(2), cluster])
def test_each_round_is_recorded_as_soon_as_it_is_done(
    monkeypatch: pytest.MonkeyPatch, make: object
) -> None:
    """On threads, processes or a cluster: what was measured is kept, whatever comes later."""
    assert callable(make)
    monkeypatch.setattr(tune, "measure", pretended)
    todo = list(tune.rounds(module_of(quantised_graph()), M4, NONE))
    seen: list[int] = []
    with make() as executor:
        found = tune.tune(
            todo, "mps2_an386", 9.0, NONE, executor, lambda m, _n: seen.append(len(m.costs))
        )
    assert seen == sorted(set(seen)) and len(seen) == len(todo)
    assert set(found.costs) == {key for one in todo for key in one.keys}


def test_a_round_measures_what_a_profile_shows() -> None:
    """On the emulated board, exactly: the first round takes what the plan would."""
    module = module_of(quantised_graph())
    first = next(tune.rounds(module, M4, NONE))
    costs = tune.measure(first, "mps2_an386", 60.0)
    assert costs.keys() == first.keys
    assert all(0 < cost.instructions < (cost.cycles or 0) for cost in costs.values())
    again = tune.measure(replace(first, keys=frozenset(list(first.keys)[:1])), "mps2_an386", 60.0)
    assert again == {key: costs[key] for key in again}
