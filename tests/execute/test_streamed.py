"""Compiled networks over a window of frames that are given the newest frames."""

from __future__ import annotations

from math import lcm
from pathlib import Path
from typing import Any

import pytest

import microtir
from microtir import CompilationConfig
from microtir.config import Optimize
from microtir.dtype import DType
from microtir.errors import RunError
from microtir.host.model import Model
from tests.execute.streamed import (
    DTYPES,
    HOPS,
    PUSHES,
    Case,
    case_of,
    check_all,
    load_all,
    random_case,
)
from tests.support.c_compilers import C_COMPILERS, strict_problems
from tests.support.networks_over_time import NETWORKS
from tests.support.pages import follow, shown
from tests.support.sanitizers import run_sanitized
from tests.support.seeds import seeds
from tests.support.small_models import module_of

FUSING = ("c", "c -mcpu=cortex-m4")
HOST = str(microtir.config.host().primary_target())


def turns(case: Case) -> int:
    """After how many pushes rows lie where others lay."""
    model = microtir.lower(case.push.module).model
    assert model is not None
    return lcm(*(state.turns for state in model.states))


@pytest.mark.slow
def test_pushes_equal_the_whole_network(tmp_path: Path) -> None:
    """Of every kind of layers and both types, to the bit, and every phase many times.

    Floats also where products and sums are fused, as docs/over-time.md says.
    """
    cases = {network: case_of(network, DType.INT8, 1) for network in NETWORKS}
    others = [
        case_of(network, DType.FLOAT32, HOPS[number % len(HOPS)], target=FUSING[number % 2])
        for number, network in enumerate(NETWORKS)
    ]
    check_all(load_all([*cases.values(), *others], tmp_path))
    found = {network: turns(case) for network, case in cases.items()}
    assert found == {
        "causal": 1, "valid": 1, "same": 1, "strided": 4, "strided_same": 2, "pooled": 3,
        "dense": 1,
    }  # fmt: skip


@pytest.mark.soak_only
def test_pushes_equal_the_whole_network_by_every_hop(tmp_path: Path) -> None:
    """And of every type; hops that go into the distance of rows have fewer phases."""
    cases = {
        (network, dtype, hop): case_of(network, dtype, hop)
        for network in NETWORKS
        for dtype in DTYPES
        for hop in HOPS
    }
    check_all(load_all(list(cases.values()), tmp_path))
    assert turns(cases["strided", DType.INT8, 2]) == 2
    assert turns(cases["pooled", DType.INT8, 2]) == 3
    assert turns(cases["pooled", DType.INT8, 3]) == 1


@pytest.mark.soak_only
@pytest.mark.parametrize("goal", list(Optimize), ids=str)
def test_random_networks_equal_the_whole_network(goal: Optimize, tmp_path: Path) -> None:
    """Any layers, to the bit, for each goal."""
    cases = [
        random_case(seed, dtype, hop, goal)
        for seed in seeds(0, 8)
        for dtype in DTYPES
        for hop in HOPS[:2]
    ]
    check_all(load_all([case for case in cases if case is not None], tmp_path), vary=False)


def test_columns_are_frames_as_well(tmp_path: Path) -> None:
    """Images of one row whose columns are frames, with kernels of this machine."""
    check_all(
        load_all(
            [case_of(name, DType.INT8, 1, axis=2, target=HOST) for name in ("same", "strided")],
            tmp_path,
        )
    )


@pytest.mark.slow
def test_pushes_are_clean_under_sanitizers(tmp_path: Path) -> None:
    """No push reads or writes beside the memory that it was given."""
    said = run_sanitized("tests.execute.streamed", tmp_path)
    assert said == f"{len(NETWORKS)} models clean"


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Case, Model, Model]:
    """Return a network with four phases and padding, compiled."""
    ((case, push, whole),) = load_all(
        [case_of("strided_same", DType.INT8, 1)], tmp_path_factory.mktemp("streamed")
    )
    return case, push, whole


def test_instances_in_other_phases_do_not_mix(loaded: tuple[Case, Model, Model]) -> None:
    """Instances that take turns, one of them some pushes behind, give what each gives alone."""
    case, push, whole = loaded
    expected = case.expected(whole)
    one, other = push.instance(), push.instance()
    for number in range(PUSHES):
        assert case.got(one, number, number + 1) == expected[number : number + 1]
        if number >= 3:
            assert case.got(other, number - 3, number - 2) == expected[number - 3 : number - 2]


def test_a_reset_in_any_phase_begins_anew(loaded: tuple[Case, Model, Model]) -> None:
    """After it the window is zeros again, and the first phase has its turn."""
    case, push, whole = loaded
    expected, fresh = case.expected(whole), push.instance()
    for count in (1, 2, 7):
        assert case.got(fresh, 0, count) == expected[:count]
        fresh.reset()
    assert case.got(fresh) == expected


def test_what_was_saved_in_any_phase_goes_on(loaded: tuple[Case, Model, Model]) -> None:
    """An instance goes on where another one was saved."""
    case, push, whole = loaded
    expected, first = case.expected(whole), push.instance()
    for number in range(9):
        saved = first.save()
        second = push.instance()
        case.got(second, 30, 33)
        second.restore(saved)
        assert case.got(second, number, PUSHES) == expected[number:]
        case.got(first, number, number + 1)


def test_what_another_hop_saved_is_refused(loaded: tuple[Case, Model, Model]) -> None:
    """The states of pushes of two frames are others than those of one."""
    case, push, _ = loaded
    other = microtir.host.load(case_of("strided_same", DType.INT8, 2).push)
    with pytest.raises(RunError, match="the state was refused"):
        push.instance().restore(other.save())
    assert case.push.metadata.state is not None


@pytest.mark.parametrize("compiler", sorted(C_COMPILERS))
def test_no_compiler_warns(compiler: str, tmp_path: Path) -> None:
    """A network with phases, padding and several runs of rows."""
    case = case_of("strided_same", DType.INT8, 1)
    case.push.export(tmp_path / "generated")
    assert not strict_problems(tmp_path / "generated", compiler, "c99")


def test_the_same_bytes_each_time() -> None:
    """Compiling is a function of the model and its options."""
    texts = [case_of("same", DType.INT8, 1).push.sources for _ in range(2)]
    assert texts[0] == texts[1]


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What docs/over-time.md shows is what happens."""
    monkeypatch.chdir(tmp_path)
    assert shown("over-time.md")[0] in follow("over-time.md", tmp_path)


@pytest.mark.parametrize("interface", ["packed", "microtvm"])
def test_other_interfaces_run_what_is_pushed(interface: str) -> None:
    """Their runs are given the newest frames, in every phase."""
    packed = microtir.config.Executor("aot", {"interface-api": "packed"})
    choices: dict[str, dict[str, Any]] = {
        "packed": {"executor": packed},
        "microtvm": {"compatibility": "microtvm"},
    }
    case = case_of("strided_same", DType.INT8, 1)
    config = case.push.module.require_config("test").with_(**choices[interface])
    push = microtir.host.load(microtir.build(module_of(case.graph), config))
    assert case.got(push) == case.expected(microtir.host.load(case.whole))


def test_tables_of_calls_are_refused() -> None:
    """States of a model that is streamed change places from run to run."""
    config = CompilationConfig(targets="c", stream_axis="1", executor="graph")
    with pytest.raises(microtir.errors.UnsupportedModelError, match="move from run to run"):
        microtir.build(module_of(case_of("same", DType.INT8, 1).graph), config)
