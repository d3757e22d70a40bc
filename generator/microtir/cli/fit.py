"""`microtir fit` says which boards a model fits, and what it would take on each."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli.model import Model, model_path, read_model
from microtir.cli.models import AsJson
from microtir.cli.output import table_lines, write, write_json, write_table, write_text
from microtir.cli.progress import Progress
from microtir.config import CompilationConfig, microcontroller
from microtir.errors import ExitCode, UsageError
from microtir.support.files import replace_file
from microtir.support.pool import process_pool

if TYPE_CHECKING:
    from microtir.boards import Board
    from microtir.search.board_fit import BoardFit

_SPARE = ("est. cycles", "CPU")
_NEXT = "next: microtir compile MODEL --board BOARD -f project -o FOLDER"


def fit(
    model: Model,
    config: CompilationConfig,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", "-j", metavar="N", min=1, help="Number of processes that plan in parallel."
        ),
    ] = os.cpu_count() or 1,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.html",
            help="Writes the table as one self-contained page.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> ExitCode:
    """Compares all boards. Shows what the model needs on each board, and whether it fits.

    Every figure is an estimate, so no C compiler is needed. RAM includes the usual stack and the
    reserve of the board. If the model does not fit a board, fit tries other options, and names
    the options that help. Exit status 1 means that the model does not fit any board.
    """
    _refuse_target(config)
    from microtir.boards import all_boards
    from microtir.search.fit_all import fit_all
    from microtir.search.fit_table import title

    boards = [board for board in all_boards() if board.code is not None]
    with Progress() as progress:
        progress.show("reading the model")
        module = read_model(model, config)
        assert module.graph is not None, "a frontend read the graph"
        with process_pool(jobs) as executor:
            fits = fit_all(
                module.graph, config, boards, executor,
                lambda known: progress.show_lines(_growing(known, boards)),
            )  # fmt: skip
    file = model_path(model).name
    if output is not None:
        from microtir.search.fit_table import to_page

        page = to_page(title(file, config.optimize.value, fits), fits)
        # A file's name may be no text.
        replace_file(output, page.encode(errors="backslashreplace"))
    if as_json:
        write_json([_facts(fit) for fit in fits])
    else:
        _print(title(file, config.optimize.value, fits), fits)
    return ExitCode.DONE if any(fit.fits for fit in fits) else ExitCode.ANSWER_IS_NO


def _refuse_target(config: CompilationConfig) -> None:
    if config.targets != microcontroller().targets:
        raise UsageError(
            "`microtir fit` does not accept a target, because each board defines its target",
            where="microtir fit --target",
            fix="leave out --target, or use `microtir report MODEL --target …` for one CPU",
        )


def _growing(known: Sequence[BoardFit], boards: Sequence[Board]) -> list[str]:
    """Return what is shown while boards are still looked at."""
    from microtir.search.fit_table import COLUMNS, RIGHT, row

    lines = [f"{len(known)} of {len(boards)} boards"]
    if known:
        width = shutil.get_terminal_size().columns
        lines += table_lines(COLUMNS, list(map(row, known)), RIGHT, _SPARE, width)
    return lines


def _print(title: str, fits: Sequence[BoardFit]) -> None:
    from microtir.search.fit_table import COLUMNS, NOTE, RIGHT, row

    write_text(title)
    write("")
    write_table(COLUMNS, [row(fit) for fit in fits], right=RIGHT, spare=_SPARE)
    write("")
    write_text(NOTE)
    write_text(_NEXT)


def _facts(fit: BoardFit) -> dict[str, object]:
    return {
        "board": fit.board,
        "cpu": fit.cpu,
        "fits": fit.fits,
        "flags": fit.flags,
        "refusal": fit.refusal,
        "instructions_estimate": fit.instructions,
        "cycles_estimate": fit.cycles,
        "seconds_estimate": fit.seconds,
        "memories": [
            {
                "name": memory.name,
                "kind": memory.kind.value,
                "taken": memory.taken,
                "bytes": memory.size,
                "missing": memory.missing,
            }
            for memory in fit.memories
        ],
    }
