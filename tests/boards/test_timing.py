"""Whether time depends on data: what TIR says, and what emulators count on extreme inputs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from microtir.boards import ProjectType, load_board
from microtir.certificate import certified, counting
from microtir.config import CompilationConfig
from microtir.profiling import extreme_instructions, measure
from microtir.profiling.static_count import StaticCount
from microtir.projects import ProjectOptions, generate
from microtir.projects.samples import extreme_samples
from microtir.tir.analysis.timing import Time
from tests.support.board_projects import digits, digits_samples, digits_with, profiled
from tests.support.command import Command


@pytest.mark.compiler_version
@pytest.mark.parametrize("name", ["mps2_an386", "mps2_an385"])
def test_long_products_end_early_on_an_m3(name: str) -> None:
    """The example takes as many instructions for any data, and on an M4 as many cycles."""
    result = profiled(name)
    assert result.time is Time.CONSTANT
    varying = {mnemonic for layer in result.layers for mnemonic in layer.varying}
    assert varying >= {"smull", "smlal"} if name == "mps2_an385" else not varying


@pytest.mark.compiler_version
@pytest.mark.parametrize(
    "name", ["mps2_an386", pytest.param("mps2_an385", marks=pytest.mark.soak_only)]
)
def test_the_example_takes_equal_counts(name: str) -> None:
    """Inputs that are low, high and alternating take as many."""
    board = load_board(name)
    counts = extreme_instructions(digits(str(board.target)), board)
    assert len(counts) == 4
    assert set(counts.values()) == {profiled(name).instructions}


def test_a_core_that_branches_is_said_to() -> None:
    """A small RISC-V core clamps by branches: counts differ, and causes name the layers."""
    board = load_board("riscv32")
    artifact = digits(str(board.target))
    result = profiled("riscv32")
    assert len(set(extreme_instructions(artifact, board).values())) > 1
    named = {layer.name: layer for layer in result.layers}
    assert named["max_pool"].time is Time.COMPILER
    assert [cause.what for cause in named["max_pool"].causes] == ["a clamp, minimum or maximum"]
    assert result.time is Time.BOUNDED  # leading zeros are counted in a loop


def test_the_certificate_and_the_header_have_the_number(microtir: Command, tmp_path: Path) -> None:
    """They state it with compiler and flags; the header says why not where it depends on data."""
    for board, masks in (
        ("mps2_an386", 1),
        ("mps2_an386", 0),
        ("riscv32", 1),
        ("riscv32", 0),
        ("atmega2560", 0),
    ):
        options = ("--board", board, "--certificate", "--module-name", "digits", "-o", tmp_path)
        choice = ("--constant-time", masks, "--force")
        assert microtir("compile", "example:digits", *options, *choice).status == 0
        facts = json.loads((tmp_path / "digits.certificate.json").read_text())
        counted, machine_code = facts["instructions"], facts["instructions"]["machine_code"]
        assert counted["board"] == board and "-O2" in counted["flags"]
        assert sum(counted["by_function"].values()) == counted["instructions"]
        most = sum(machine_code["by_function"].values())
        header = (tmp_path / "digits.h").read_text()
        defined = dict(re.findall(r"#define DIGITS_(INSTRUCTIONS\w*) (\d+)", header))
        if board == "atmega2560":
            assert defined == {}
            assert "machine code of avr is not followed" in machine_code["problem"]
            assert "The machine code was not checked" in header
            assert "no fixed number of instructions" in header
        elif masks:
            assert set(defined.values()) == {f"{most}"} == {f"{machine_code['least']}"}
            assert len(defined) == 2 and {of["time"] for of in facts["timing"]} == {"constant"}
        else:
            assert machine_code["least"] < counted["instructions"] <= most
            assert defined == {"INSTRUCTIONS_MAX": f"{most}"}
            assert all(f" * {branch}\n" in header for branch in machine_code["branches"])


@pytest.mark.parametrize(("least", "most"), [(-2, -1), (1, 2)])
def test_a_count_without_the_run_is_a_problem(
    least: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A static count that does not contain the count of the run is not stated, and why."""
    board = load_board("mps2_an386")
    run = profiled(board.name).instructions
    wrong = StaticCount({"digits_run": run + most}, least=run + least)
    monkeypatch.setattr(counting, "static_count", lambda _: wrong)
    artifact = digits(str(board.target))
    counted = counting.count_instructions(artifact, board)
    reason = f"its count is {run + least} to {run + most}, but a run took {run} instructions"
    assert (counted.range, counted.machine_code.problem) == (None, reason)
    header = next(f.text for f in certified(artifact, counted).sources if f.path == "digits.h")
    assert f"The machine code was not checked: {reason}." in header
    assert "DIGITS_INSTRUCTIONS_MAX" not in header


def test_constant_time_is_refused_by_layer(microtir: Command, tmp_path: Path) -> None:
    """A core that shifts in loops is refused with layers and causes; an M4 is not."""
    options = ("--constant-time", "1", "-o", tmp_path / "out")
    assert microtir("compile", "example:digits", "--board", "mps2_an386", *options).status == 0
    refused = microtir("compile", "example:digits", "--board", "atmega2560", "--force", *options)
    assert refused.status == 1
    assert "MAX_POOL_2D" in refused.err and "a clamp, minimum or maximum" in refused.err


@pytest.mark.compiler_version
@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("microbit", "-O2"),
        *(
            pytest.param(name, level, marks=pytest.mark.soak_only)
            for name in ("microbit", "riscv32", "mps2_an386")
            for level in ("-O0", "-O1", "-O2", "-O3", "-Os")
        ),
    ],
)
def test_masks_take_equal_counts(name: str, level: str, tmp_path: Path) -> None:
    """On CPUs that branch, extreme inputs take as many; outputs equal the reference's."""
    board = load_board(name)
    config = CompilationConfig.from_target(board.target).with_(module_name="digits")
    artifact = digits_with(config.with_(constant_time=True))
    model = artifact.module.model
    assert model is not None
    counts = {}
    for kind, samples in {**extreme_samples(model.inputs), "digits": digits_samples(2)}.items():
        options = ProjectOptions(samples={"digits": samples})
        project = generate(artifact, board, ProjectType.BAREMETAL, tmp_path / kind, options=options)
        project.build([f"CFLAGS={level} -Werror -Wconversion -pedantic"])
        counts[kind] = measure(project).instructions
    result = project.run(timeout=60)
    assert (result.status, result.output.count(" equal\n")) == (0, 2), result.output
    assert len(counts) == 5
    assert len(set(counts.values())) == 1, counts


def test_masks_are_proven(microtir: Command, tmp_path: Path) -> None:
    """The checker reads the comparisons that stand beside the masks."""
    out = tmp_path / "out"
    options = ("--target", "c -march=rv32imc", "--constant-time", "1", "--certificate", "-o", out)
    assert microtir("compile", "example:digits", *options).status == 0
    assert "masked_near_min_i32(" in (out / "digits_int8.c").read_text()
    checked = microtir("check-certificate", out / "digits_int8.certificate.json")
    assert checked.status == 0, checked.out
