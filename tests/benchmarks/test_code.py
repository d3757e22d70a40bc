"""Estimates of code are near what compilers made, of models that no figure was fitted to."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import pytest

from benchmarks import code
from benchmarks.networks import network
from microtir import driver, frontend
from microtir.boards import load_board
from microtir.config import CompilationConfig, Optimize
from microtir.measure.code import CodeFigures
from tests.support.pages import ROOT

WITHIN = 0.1
EXAMPLES = ROOT / "examples" / "digits"


@pytest.mark.parametrize("cpu", code.BOARDS)
@pytest.mark.parametrize("goal", [Optimize.FLASH, Optimize.BALANCED])
@pytest.mark.parametrize("name", ["digits_float", "digits_int8"])
def test_an_estimate_is_what_was_recorded(cpu: str, goal: Optimize, name: str) -> None:
    """Nothing is compiled here: `benchmarks/code.json` has what the boards' compilers made."""
    assert _stated(EXAMPLES / f"{name}.tflite", cpu, goal) == _recorded(cpu, name, goal)


@pytest.mark.model("ad01_int8")
@pytest.mark.parametrize("cpu", code.BOARDS)
def test_layers_that_share_a_function(cpu: str, models_dir: Path) -> None:
    """Nine layers call one function, each for one row and with a shift to the right."""
    stated = _stated(models_dir / "ad01_int8.tflite", cpu, Optimize.FLASH)
    assert stated == _recorded(cpu, "ad01_int8", Optimize.FLASH)


def _stated(file: Path, cpu: str, goal: Optimize) -> int:
    config = CompilationConfig.from_target(load_board(code.BOARDS[cpu]).target)
    module = frontend.from_tflite(file).with_configuration(config.with_(optimize=goal))
    return driver.build(module).metadata.code_bytes_estimate


def _recorded(cpu: str, name: str, goal: Optimize) -> int:
    return code.read_recorded()[cpu][f"{name} {goal.value}"].stated


@pytest.mark.parametrize("cpu", code.BOARDS)
def test_every_recorded_model_is_near(cpu: str) -> None:
    """The example and the nine reference models, at each goal."""
    recorded = code.read_recorded()[cpu]
    assert len(recorded) == 11 * len(Optimize)
    assert {name: s for name, s in recorded.items() if abs(s.error) > WITHIN} == {}


def test_models_that_were_not_looked_at_are_near() -> None:
    """Nine in ten are stated within 10 %, none is off by a quarter."""
    unseen = code.read_recorded()[f"{code.UNSEEN} on cortex-m4"].values()
    assert sum(abs(s.error) <= WITHIN for s in unseen) >= 0.9 * len(unseen)
    assert max(abs(s.error) for s in unseen) < 0.25


def test_a_network_is_taken_to_pieces() -> None:
    """Functions, assembly and libraries are the program, but for what assembly is stated as."""
    made = code.compiled(network(1), load_board("microbit"), Optimize.FLASH)
    own = sum(each.bytes for each in made.functions)
    libraries = sum(made.libraries.values())
    assert own + made.rest + libraries == pytest.approx(made.bytes, abs=len(made.functions))
    assert any("mulsf3" in member for member in made.libraries)
    assert {"main", "function", "mul_float"} <= made.kinds


def test_figures_are_found_again() -> None:
    """Programs of known figures give these, and libraries are counted once."""
    true = {"function": 24.0, "load_8": 4.0, "mul_float": 12.0, "exp": 90.0}
    needs = {"mul_float": {"mul": 100}, "exp": {"mul": 100, "add": 60}}
    programs = []
    for n in range(40):
        work = {"function": 1, "load_8": 3 + n % 7, "mul_float": n % 5, "exp": n % 3}
        work = {kind: times for kind, times in work.items() if times}
        size = round(sum(true[kind] * times for kind, times in work.items()))
        members = {m: b for kind in work for m, b in needs.get(kind, {}).items()}
        written = code.Written(MappingProxyType(work), size)
        total = size + sum(members.values())
        programs.append(code.Compiled((written,), 0, MappingProxyType(members), total))
    figures = code.calibrated(programs, needs, {"sin": 300})
    assert dict(figures.bytes) == pytest.approx({**true, "sin": 300}, rel=0.1)
    assert figures.linked(["exp", "mul_float", "exp", "load_8"]) == 160
    assert 95 <= figures.least <= 100 <= figures.most <= 105


def test_probes_tell_what_floats_need() -> None:
    """A Cortex-M0 has functions for floats, a Cortex-M4F instructions."""
    boards = (load_board(code.BOARDS[cpu]) for cpu in ("cortex-m0", "cortex-m4"))
    (small, forms), (large, fused) = map(code.probed, boards)
    assert "mul_float" in small and "mul_float" not in large
    assert sum(small["mul_float"].values()) > 500
    assert set(small["mul_float"]) < set(small["sin_polynomial"])
    assert 100 < fused["tanh_fused"] < forms["tanh_polynomial"] < 1000


def test_what_no_network_has_is_counted_too() -> None:
    """A kind without a figure takes the same as others that are rare."""
    figures = CodeFigures({"load_8": 4.0}, {}, {}, 90, 110)
    assert figures.of({"load_8": 2, "lgamma": 1}) > figures.of({"load_8": 2}) == 8.0
