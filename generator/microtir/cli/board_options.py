"""Defines the options about boards that several verbs take, and runs a program where they say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli.panels import RUN_PANEL
from microtir.config import CompilationConfig
from microtir.errors import UsageError

if TYPE_CHECKING:
    from microtir.artifact import Artifact
    from microtir.host.verify import Runner
    from microtir.profiling import BoardCompiler

Board = Annotated[
    str,
    typer.Option(
        "--board",
        metavar="BOARD",
        help="A board that `microtir boards` lists. The board sets the default target.",
        show_default=False,
    ),
]
MaybeBoard = Annotated[
    str | None,
    typer.Option(
        "--board",
        metavar="BOARD",
        help="Runs the C code on this board or its emulator. Sets the default target.",
    ),
]
LimitingBoard = Annotated[
    str | None,
    typer.Option(
        "--board",
        metavar="BOARD",
        help="The board. Its memories are limits, and it sets the default target.",
    ),
]
Port = Annotated[
    str | None,
    typer.Option(
        "--port",
        metavar="PORT",
        help="Serial port of a real board. The board is flashed and runs the program.",
    ),
]
FiguresFile = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Writes the figures as JSON (- for stdout)."),
]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        min=0.1,
        rich_help_panel=RUN_PANEL,
        help="Time limit for each run of a program.",
    ),
]


def check_board_options(
    where: str, board: str | None, port: str | None, *, sanitize: bool = False
) -> None:
    """Refuse options that contradict each other.

    Raises:
        UsageError: a port without a board, or sanitizers on a board.
    """
    if port is not None and board is None:
        raise UsageError("--port requires --board", where=where)
    if sanitize and board is not None:
        raise UsageError("sanitizers run only on this machine", where=where, fix="drop --board")


def board_compiler(board: str | None, config: CompilationConfig) -> BoardCompiler | None:
    """Return what compiles code to learn its size, where a budget asks; None without one."""
    return None if config.budget.flash is None else compiler_of(board)


def compiler_of(board: str | None) -> BoardCompiler | None:
    """Return what compiles code to learn its size; None without a board or its compiler."""
    if board is None:
        return None
    from microtir.boards import load_board
    from microtir.profiling import BoardCompiler

    return BoardCompiler.of(load_board(board))


def board_runner(
    artifact: Artifact, board: str | None, port: str | None, timeout: float
) -> Runner | None:
    """Return what runs a model on a board; None without a board."""
    if board is None:
        return None
    from microtir.boards import load_board
    from microtir.projects import run_samples

    chosen = load_board(board)
    return lambda samples: run_samples(
        artifact, chosen, samples.values, port=port, timeout=timeout, steps=samples.steps or 1
    )
