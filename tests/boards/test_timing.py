"""Whether time depends on data: what TIR says, and what emulators count on extreme inputs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from microtir.boards import load_board
from microtir.profiling import extreme_instructions
from microtir.tir.analysis.timing import Time
from tests.support.board_projects import digits, profiled
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
    number = profiled("mps2_an386").instructions
    for board in ("mps2_an386", "riscv32"):
        options = ("--board", board, "--certificate", "--module-name", "digits")
        assert microtir("compile", "example:digits", *options, "-o", tmp_path / board).status == 0
        facts = json.loads((tmp_path / board / "digits.certificate.json").read_text())
        header = (tmp_path / board / "digits.h").read_text()
        counted = facts["instructions"]
        assert counted["board"] == board and "-O2" in counted["flags"]
        assert sum(counted["by_function"].values()) == counted["instructions"]
        defined = re.findall(r"#define DIGITS_INSTRUCTIONS (\d+)", header)
        if board == "mps2_an386":
            assert defined == [str(number)] == [str(counted["instructions"])]
            assert {of["time"] for of in facts["timing"]} == {"constant"}
        else:
            assert not defined and "no fixed number of instructions" in header


def test_constant_time_is_refused_by_layer(microtir: Command, tmp_path: Path) -> None:
    """A core that branches and a float model are refused with layers and causes; an M4 is not."""
    options = ("--constant-time", "1", "-o", tmp_path / "out")
    assert microtir("compile", "example:digits", "--board", "mps2_an386", *options).status == 0
    refused = microtir("compile", "example:digits", "--board", "riscv32", "--force", *options)
    assert refused.status == 1
    assert "MAX_POOL_2D" in refused.err and "a clamp, minimum or maximum" in refused.err
