"""What "fits" means, wherever it is said: one sum of bytes for one model and one board."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from microtir import driver, frontend
from microtir.artifact import footprint
from microtir.boards import load_board
from microtir.boards.board import Board
from microtir.boards.search import BOARD_PATH
from microtir.config import CompilationConfig
from microtir.errors import MicrotirError
from microtir.profiling import profile
from microtir.projects import ProjectOptions, generate
from microtir.projects.capacity import demand, project_footprint
from microtir.projects.models import describe_models
from tests.support.command import INT8, Command

RAM, STACK, RESERVE, IO = 8192, 4096, 512, 64 + 10
NAME = "small"
ROWS = ("--executor-aot-row-fed-inputs", "1")
DRAINED = ("--executor-aot-row-drained-outputs", "1")
INSIDE = ("--pass-config", "memory.use_workspace_io=1")
WAYS = {(): IO, ROWS: 10, (*ROWS, *DRAINED): 0, INSIDE: 0}
"""Flags, and bytes of inputs and outputs that then lie outside of the workspace."""


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Board:
    """Return a board with little RAM for variables, a reserve in it, and more RAM beside it."""
    text = (load_board("mps2_an386").file).read_text()
    text = text.replace('data = "ssram"\n', f'data = "ssram"\nreserve = {RESERVE}\n')
    text = text.replace(
        'name = "ssram"\nkind = "ram"\naddress = 0x2000_0000\nsize = 0x40_0000\n',
        f'name = "ssram"\nkind = "ram"\naddress = 0x2000_0000\nsize = {RAM}\n',
    )
    folder = tmp_path / "boards" / NAME
    folder.mkdir(parents=True)
    (folder / "board.toml").write_text(text)
    monkeypatch.setenv(BOARD_PATH, str(folder.parent))
    return load_board(NAME)


def configuration(microtir: Command, *flags: str) -> CompilationConfig:
    """Return what a command line with these flags compiles for the board, within its RAM."""
    fixed = ("--board", NAME, "--ram-budget", "board", "--dump-config")
    return CompilationConfig.from_json(microtir("profile", INT8, *flags, *fixed).out)


@pytest.mark.parametrize(("flags", "outside"), WAYS.items(), ids=map(" ".join, WAYS))
def test_all_mean_the_same_bytes(
    microtir: Command, board: Board, flags: tuple[str, ...], outside: int
) -> None:
    """Report, budget and a project's capacity agree, with rows and with tensors in the workspace.

    The report counted inputs as a whole whose rows are fed; the budget counted no input at all, and
    took another memory than the report.
    """
    config = configuration(microtir, *flags)
    assert config.budget.ram == RAM - STACK - RESERVE - outside
    artifact = driver.build(frontend.from_tflite(INT8), config)
    found = footprint(artifact.metadata, stack=STACK, reserve=RESERVE)
    assert (found.io, found.total) == (outside, found.planned + outside + STACK + RESERVE)

    facts = json.loads(
        microtir("report", INT8, *flags, "--board", NAME, "--ram-budget", "board", "--json").out
    )
    limits = {limit["option"]: limit for limit in facts["limits"]}
    assert limits[f"{NAME} ssram"]["used"] == found.total
    free = [limit["allowed"] - limit["used"] for limit in limits.values() if "ram" in str(limit)]
    assert [free[0]] * 2 == free[:2] == [RAM - found.total] * 2
    assert facts["ram"]["io"] == outside

    models = describe_models((artifact,), ProjectOptions())
    ram = project_footprint(models, (artifact,), board, STACK)
    assert ram == found
    # The application of a project has whole samples, also of what it hands over in rows.
    whole = 0 if flags == INSIDE else IO
    assert sum(need.bytes for need in demand(models, ram).ram) == found.total - outside + whole


def test_a_profile_measures_the_same_bytes(microtir: Command, board: Board) -> None:
    """What the linker placed is the sum that was promised, but for the stack, which is measured."""
    config = configuration(microtir, *ROWS)
    artifact = driver.build(frontend.from_tflite(INT8), config)
    measured = profile(artifact, board).ram
    promised = footprint(artifact.metadata, stack=measured.stack, reserve=RESERVE)
    assert measured == promised


@pytest.mark.parametrize("missing", [0, 1])
def test_a_budget_of_the_board_fits_the_board(
    microtir: Command, board: Board, tmp_path: Path, missing: int
) -> None:
    """A project is refused for one byte more than the budget of the board allows, not for less."""
    config = configuration(microtir)
    artifact = driver.build(frontend.from_tflite(INT8), config)
    room = (config.budget.ram or 0) - footprint(artifact.metadata).planned
    options = ProjectOptions(stack=STACK + room + missing)
    if not missing:
        generate(artifact, board, "baremetal", tmp_path / "project", options=options)
        return
    with pytest.raises(MicrotirError, match="1 too many"):
        generate(artifact, board, "baremetal", tmp_path / "project", options=options)


@pytest.mark.parametrize("name", ["spresense", "atmega2560"])
def test_a_memory_that_holds_the_weights_too(microtir: Command, name: str) -> None:
    """Where weights of unknown size lie in RAM, nobody knows what is left of it."""
    portable = ("--target", "c") if name == "atmega2560" else ()
    result = microtir(
        "compile", INT8, "-o", "x", "--board", name, *portable, "--ram-budget", "board"
    )
    assert result.status == 2
    assert (
        "or its amount is unknown" in result.diagnostic
        and "fix:      give the limit as a number of bytes" in result.diagnostic
    )
