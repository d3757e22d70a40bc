"""The frontier: every trial is a configuration that a user can ask for, and is measured once."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from microtir import driver
from microtir.artifact import Artifact
from microtir.config import CompilationConfig, Measure, Optimize
from microtir.errors import LimitError
from microtir.module.ir_module import IRModule
from microtir.operators.convolution.definition import Conv2D
from microtir.plan.ir import IN_ONE_CALL
from microtir.search.chart import picture_of
from microtir.search.pareto import Frontier, ProgramCost, Trial, pareto
from microtir.search.picture import to_svg
from tests.kernels.test_code_bytes import SAME, linear
from tests.support.graphs import graph
from tests.support.small_models import module_of, quantised_graph

BASE = CompilationConfig(targets="c -mcpu=cortex-m4")


def trial(ram: int, instructions: int, flash: int) -> Trial:
    """Return a trial with these figures."""
    return Trial(BASE, ProgramCost(ram, instructions, flash))


def workspace(artifact: Artifact) -> int:
    """Bytes of the workspace of a program."""
    facts = artifact.metadata.memory
    assert facts is not None
    return facts.workspace_size


def test_what_another_beats_is_not_on_the_frontier() -> None:
    """Equal in all is no defeat; worse in one and better in none is."""
    good, bad, other = trial(10, 10, 10), trial(10, 11, 10), trial(11, 9, 10)
    frontier = Frontier((other, good, bad))
    assert frontier.best == (other, good)
    assert not good.cost.beats(good.cost, Measure.INSTRUCTIONS)


def test_cycles_may_decide() -> None:
    """With --measure cycles a program of more instructions is on the frontier, and higher up."""
    few, fast = (Trial(BASE, ProgramCost(10, n, 10, cycles=c)) for n, c in ((10, 30), (20, 20)))
    assert Frontier((few, fast)).best == (few,)
    by_cycles = Frontier((few, fast), Measure.CYCLES)
    assert by_cycles.best == (fast,)
    picture = to_svg(picture_of(by_cycles, "m"))
    assert "estimated cycles of one inference" in picture
    assert "instructions of one inference" in to_svg(picture_of(Frontier((few, fast)), "m"))


def test_each_program_is_measured_once_and_keeps_its_budget() -> None:
    """The flags of a trial give its program again."""
    module = module_of(quantised_graph())
    measured: list[Artifact] = []
    told: list[str] = []

    def measure(artifact: Artifact) -> ProgramCost:
        measured.append(artifact)
        return ProgramCost(workspace(artifact), 1000 - len(measured), 5)

    found = pareto(module, BASE.with_(budget={"ram": 7}), measure, 4, told.append)
    assert len(found.trials) == len(measured) >= 2
    rams = [t.cost.ram for t in found.trials]
    assert rams == sorted(rams, reverse=True)
    for t in found.trials:
        limit = t.config.budget.ram
        assert limit is None or t.cost.ram <= limit
    assert any(t.config.optimize is Optimize.SPEED for t in found.trials)
    assert told[0].startswith("trial 1: ")


def test_the_compiler_of_the_board_decides_on_flash() -> None:
    """A budget of flash is kept by compiled code, and what no goal keeps to is refused."""
    module, asked, told = module_of(quantised_graph()), list[Artifact](), list[str]()

    def compiler(artifact: Artifact) -> int:
        asked.append(artifact)
        return 2 * artifact.flash().code

    def measure(artifact: Artifact) -> ProgramCost:
        return ProgramCost(workspace(artifact), 1, artifact.flash(compiler(artifact)).bytes)

    sizes = [trial.cost.flash for trial in pareto(module, BASE, measure, 1, told.append).trials]
    asked.clear()
    tight = BASE.with_(budget={"flash": min(sizes)})
    found = pareto(module, tight, measure, 1, told.append, compiler)
    assert asked and all(t.cost.flash <= min(sizes) for t in found.trials)
    with pytest.raises(LimitError, match="more than the budget"):
        pareto(module, BASE.with_(budget={"flash": 10}), measure, 1, told.append, compiler)


def test_the_flags_say_goal_and_budget() -> None:
    """What the table prints is what the command line takes."""
    config = BASE.with_(optimize="speed", budget={"ram": 4000})
    assert Trial(config, ProgramCost(1, 1, 1)).flags == "--optimize speed --ram-budget 4000"
    assert Trial(BASE, ProgramCost(1, 1, 1)).flags == "--optimize balanced"
    config = BASE.with_(optimize="speed", budget={"flash": 9000})
    cost = ProgramCost(1, 1, 1)
    assert Trial(config, cost).flags == "--optimize speed"  # a budget that all trials have
    assert Trial(config, cost, True).flags == "--optimize speed --flash-budget 9000"


def test_budgets_of_flash_show_the_kernels_that_keep_weights_as_they_are() -> None:
    """A convolution whose fastest kernel has 3.56 times the weights; the flags give it again."""
    layer = linear(Conv2D(padding=SAME), (1, 8, 8, 32), (32, 3, 3, 32))
    module = IRModule(graph=graph((layer,), layer.activations, layer.outputs))

    def kernel(found: Trial) -> str:
        artifact = driver.build(module, found.config)
        (operator,) = artifact.module.require_program("test").plan.operators
        return operator.candidate.kernel

    def measure(artifact: Artifact) -> ProgramCost:
        (operator,) = artifact.module.require_program("test").plan.operators
        instructions = operator.candidate.cost(IN_ONE_CALL).instructions
        return ProgramCost(workspace(artifact), instructions, artifact.flash().bytes)

    best = pareto(module, BASE, measure, 2, lambda _: None).best
    limited = [trial for trial in best if trial.limits_flash]
    assert any("bands" in kernel(trial) for trial in limited)
    assert not any("bands" in kernel(trial) for trial in best if not trial.limits_flash)


def test_the_picture_has_a_mark_for_each_trial() -> None:
    """Well-formed, the same bytes again, and every mark inside."""
    frontier = Frontier((trial(5000, 100, 9), trial(900, 120_000, 9), trial(950, 130_000, 9)))
    text = to_svg(picture_of(frontier, "m & n on b"))
    assert text == to_svg(picture_of(frontier, "m & n on b"))
    root = ET.fromstring(text)
    marks = root.findall("{http://www.w3.org/2000/svg}circle")
    assert len(marks) == 3
    for mark in marks:
        assert 0 < float(mark.attrib["cx"]) < 720 and 0 < float(mark.attrib["cy"]) < 440
    words = [text for text in root.itertext() if text == "balanced"]
    assert 1 <= len(words) <= 3  # a mark is called by its goal where there is room
    one = to_svg(picture_of(Frontier((trial(1, 1, 1),)), "one"))
    assert one.count("<circle") == 1
