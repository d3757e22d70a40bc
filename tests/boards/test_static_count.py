"""Instructions that are counted from the machine code agree with those that an emulator counts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import microtir
from microtir.boards import load_board
from microtir.config import CompilationConfig
from microtir.profiling import extreme_instructions, profile
from tests.support.board_projects import digits, digits_with
from tests.support.command import Command

on_boards = pytest.mark.parametrize(
    "name",
    [
        "mps2_an386",
        "microbit",
        "riscv32",
        *(
            pytest.param(name, marks=pytest.mark.soak_only)
            for name in ("mps2_an385", "mps2_an500", "mps2_an505", "mps3_an547", "riscv32_zbb")
        ),
    ],
)


@pytest.mark.compiler_version
@on_boards
def test_counts_of_the_example_agree(name: str) -> None:
    """For each layer it is the most of what runs; small cores without masks branch more."""
    board, is_small = load_board(name), name in ("microbit", "riscv32")
    result = profile(digits(str(board.target)), board, static=True)
    count = result.static
    assert count is not None and not count.problem
    for layer in result.layers:
        most = count.by_function[layer.function]
        above = layer.instructions / 5 if is_small else 1
        assert layer.instructions <= most <= layer.instructions + above, layer.name
    assert count.least <= result.instructions <= count.instructions
    assert count.instructions / count.least < (1.04 if is_small else 1.002)
    assert all(re.fullmatch(r"in \w+, \w+\.[cS]:\d+", line) for line in count.branches)


@pytest.mark.compiler_version
@on_boards
def test_masks_make_the_count_exact(name: str) -> None:
    """With `--constant-time 1` no branch depends on data, and the counts are equal."""
    board = load_board(name)
    config = CompilationConfig.from_target(board.target).with_(constant_time=True)
    artifact = digits_with(config)
    result = profile(artifact, board, static=True)
    count = result.static
    assert count is not None and not count.branches and not count.problem
    assert count.by_function == {layer.function: layer.instructions for layer in result.layers}
    assert count.least == count.instructions
    assert set(extreme_instructions(artifact, board).values()) == {count.instructions}


def test_the_command_shows_both(microtir: Command, tmp_path: Path) -> None:
    """The summary has the count and the branches, the JSON all of it; AVR has none."""
    figures = tmp_path / "figures.json"
    options = ("--board", "mps2_an386", "--static", "--json", figures)
    run = microtir("profile", "example:digits", *options)
    assert run.status == 0, run.err
    facts = json.loads(figures.read_text())
    most = sum(facts["static"]["by_function"].values())
    assert f"{facts['static']['least']:,} to {most:,} instructions" in run.out
    assert "depends on data" in run.out and "the compiler made branches on data" in run.out
    other = microtir("profile", "example:digits", "--board", "atmega2560", "--static")
    assert other.status == 0, other.err
    assert "none: machine code of avr is not followed" in other.out


@pytest.mark.compiler_version
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("ad01_int8", marks=pytest.mark.model("ad01_int8")),
        pytest.param("kws_int8", marks=[pytest.mark.model("kws_int8"), pytest.mark.soak_only]),
    ],
)
def test_counts_of_models_on_rv32_agree(name: str, models_dir: Path) -> None:
    """With masks the counts are equal; without them the run is within a percent of the most."""
    board = load_board("riscv32")
    model = microtir.frontend.from_tflite(models_dir / f"{name}.tflite")
    for masks in (False, True):
        config = CompilationConfig.from_target(board.target).with_(constant_time=masks)
        result = profile(microtir.build(model, config), board, static=True)
        count = result.static
        assert count is not None and not count.problem
        assert count.least <= result.instructions <= count.instructions
        assert count.instructions <= result.instructions * (1 if masks else 1.01)
