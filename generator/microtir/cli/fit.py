"""`microtir fit` says which boards a model fits, and what it would take on each."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli.model import Model, model_path, read_model
from microtir.cli.models import AsJson
from microtir.cli.output import cell, size, table_lines, write, write_json, write_table
from microtir.cli.progress import Progress
from microtir.config import CompilationConfig, microcontroller
from microtir.errors import ExitCode, UsageError
from microtir.files import replace_file

if TYPE_CHECKING:
    from microtir.boards import Board
    from microtir.search.board_fit import BoardFit, MemoryFit

_COLUMNS = ("board", "CPU", "RAM", "flash", "est. cycles", "est. time", "verdict")
_RIGHT = ("RAM", "flash", "est. cycles", "est. time")
_SPARE = ("est. cycles", "CPU")
_NOTE = (
    "RAM and flash: needed of what there is. All figures are estimates; cycles and time have no\n"
    "wait states."
)
_NEXT = "next: microtir compile MODEL --board BOARD -f project -o FOLDER"


def fit(
    model: Model,
    config: CompilationConfig,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", metavar="N", min=1, help="Processes that plan at once.")
    ] = os.cpu_count() or 1,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.html", help="Writes one self-contained page."),
    ] = None,
    as_json: AsJson = False,
) -> ExitCode:
    """Shows all boards at once: what a model takes on each, and whether it fits.

    Every figure is an estimate of planning, so that no C compiler is needed. RAM has the stack
    that is usual on the board and what the board reserves. Where a model does not fit, what helps
    is tried, and the verdict names it. Exit status 1 means that no board has room for it.
    """
    _refuse_target(config)
    from microtir.boards import all_boards
    from microtir.search.fit_all import fit_all

    boards = [board for board in all_boards() if board.code is not None]
    with Progress() as progress:
        progress.show("reading the model")
        module = read_model(model, config)
        assert module.graph is not None, "a frontend gave the graph"
        with ProcessPoolExecutor(jobs) as executor:
            fits = fit_all(
                module.graph, config, boards, executor,
                lambda known: progress.show_lines(_growing(known, boards)),
            )  # fmt: skip
    file = model_path(model).name
    if output is not None:
        from microtir.search.fit_page import to_page

        rows = [(found.fits, list(map(cell, _row(found)))) for found in fits]
        page = to_page(_title(file, config, fits), _COLUMNS, rows, right=_RIGHT, note=_NOTE)
        # A file's name may be no text.
        replace_file(output, page.encode(errors="backslashreplace"))
    if as_json:
        write_json([_facts(found) for found in fits])
    else:
        _print(_title(file, config, fits), fits)
    return ExitCode.DONE if any(found.fits for found in fits) else ExitCode.ANSWER_IS_NO


def _refuse_target(config: CompilationConfig) -> None:
    if config.targets != microcontroller().targets:
        raise UsageError(
            "a target is of no use: every board has its own",
            where="microtir fit --target",
            fix="leave --target out; `microtir report MODEL --target …` looks at one CPU",
        )


def _growing(known: Sequence[BoardFit], boards: Sequence[Board]) -> list[str]:
    """Return what is shown while boards are still looked at."""
    lines = [f"{len(known)} of {len(boards)} boards"]
    if known:
        width = shutil.get_terminal_size().columns
        lines += table_lines(_COLUMNS, list(map(_row, known)), _RIGHT, _SPARE, width)
    return lines


def _title(file: str, config: CompilationConfig, fits: Sequence[BoardFit]) -> str:
    room = sum(found.fits for found in fits)
    return f"{file}: fits {room} of {len(fits)} boards at --optimize {config.optimize.value}"


def _print(title: str, fits: Sequence[BoardFit]) -> None:
    write(f"{title}\n")
    write_table(_COLUMNS, [_row(found) for found in fits], right=_RIGHT, spare=_SPARE)
    write(f"\n{_NOTE}\n{_NEXT}")


def _row(found: BoardFit) -> tuple[object, ...]:
    from microtir.boards.board import MemoryKind

    seconds = found.seconds
    return (
        found.board,
        found.cpu,
        _of(found.memory(MemoryKind.RAM)),
        _of(found.memory(MemoryKind.FLASH)),
        _three_digits(found.cycles) if found.cycles else "",
        _time(seconds) if seconds else "",
        _verdict(found),
    )


def _of(memory: MemoryFit | None) -> str:
    return f"{cell(memory.taken)} of {size(memory.size)}" if memory else ""


def _verdict(found: BoardFit) -> str:
    if found.refusal:
        return f"not compiled: {found.refusal}"
    if found.fits:
        return f"fits with {found.flags}" if found.flags else "fits"
    parts = [f"{cell(m.missing)} bytes of {m.name}" for m in found.memories if m.missing]
    at = f" at {found.flags}" if found.flags else ""
    return f"misses {' and '.join(parts)}{at}"


def _time(seconds: float) -> str:
    """Return a time with three digits, in the unit that people would take."""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def _three_digits(count: int) -> str:
    """Round an estimate: more digits would promise too much."""
    unit = 10 ** max(len(str(count)) - 3, 0)
    return cell(round(count / unit) * unit)


def _facts(found: BoardFit) -> dict[str, object]:
    return {
        "board": found.board,
        "cpu": found.cpu,
        "fits": found.fits,
        "flags": found.flags,
        "refusal": found.refusal,
        "instructions_estimate": found.instructions,
        "cycles_estimate": found.cycles,
        "seconds_estimate": found.seconds,
        "memories": [
            {
                "name": memory.name,
                "kind": memory.kind.value,
                "taken": memory.taken,
                "bytes": memory.size,
                "missing": memory.missing,
            }
            for memory in found.memories
        ],
    }
