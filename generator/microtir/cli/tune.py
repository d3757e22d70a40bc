"""`microtir tune` measures what kernels cost, for `--tuning-records`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli.board_options import Board, Timeout
from microtir.cli.model import Model, read_model
from microtir.cli.output import cell, facts
from microtir.config import CompilationConfig
from microtir.config.processors import for_processors
from microtir.errors import ExitCode, ToolError, UsageError
from microtir.support.files import replace_file
from microtir.support.resources import install_extra

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from microtir.plan.measured import Measured
    from microtir.search.tune import Round


def tune(
    model: Model,
    config: CompilationConfig,
    board: Board,
    records: Annotated[
        Path,
        typer.Option(
            "--records", "-o", metavar="FILE",
            help="File of the records. Records in the file are not measured again.",
            show_default=False
        ),
    ],
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", metavar="N", min=1, help="Number of programs to build and run in parallel."
        ),
    ] = max(os.cpu_count() or 1, 1),
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler", metavar="ADDRESS",
            help="Address of the scheduler of a Dask cluster. The cluster then does the work."
        ),
    ] = None,
    timeout: Timeout = 300.0,
) -> ExitCode:  # fmt: skip
    """Measures every kernel that could compute a layer, on an emulated board.

    The result is a file for --tuning-records. With this file, plans use measured instructions, or
    cycles estimated from them. The file is written after every program, so an interrupted run
    can continue where it stopped.
    """
    from microtir.plan.measured import Measured
    from microtir.search import tune as search

    module = read_model(model, config)
    known = Measured(str(config.primary_target()), {})
    if records.exists():
        known = Measured.read(records, known.target)
    before = len(known.costs)
    todo = list(search.rounds(module, config, known))
    with _bar(len(todo)) as advance, _executor(jobs, scheduler, len(todo)) as executor:

        def done(measured: Measured, _number: int) -> None:
            replace_file(records, measured.to_text().encode())
            advance()

        measured = search.tune(todo, board, timeout, known, executor, done)
    if not records.exists():
        replace_file(records, measured.to_text().encode())
    name = module.graph.name if module.graph else model
    title = f"{name} {for_processors(config.targets)} on {board}"
    _print(title, todo, len(measured.costs) - before, len(measured.costs), records)
    return ExitCode.DONE


def _print(title: str, todo: list[Round], fresh: int, total: int, records: Path) -> None:
    facts(
        [
            ("model", title),
            ("programs built and run", len(todo)),
            ("kernels measured", fresh),
            ("records", f"{cell(total)} in {records}"),
            ("use them", f"--tuning-records {records}"),
        ]
    )


def _executor(jobs: int, scheduler: str | None, rounds: int) -> AbstractContextManager[Executor]:
    """Return processes of this machine, or the workers of a cluster."""
    if scheduler is None:
        from microtir.support.pool import process_pool

        return process_pool(max(min(jobs, rounds), 1))
    try:
        from distributed import Client
    except ImportError:
        raise ToolError(
            "Dask is not installed",
            where="--scheduler",
            fix=f"{install_extra('dask')}, or leave out --scheduler to use this machine",
        ) from None
    try:
        client = Client(scheduler, timeout="20s")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"no scheduler answers at '{scheduler}': {error}",
            where="--scheduler",
            legal="the address that `dask scheduler` prints, tcp://HOST:8786 for example",
        ) from None
    executor: AbstractContextManager[Executor] = client.get_executor()
    return executor


@contextmanager
def _bar(rounds: int) -> Iterator[Callable[[], None]]:
    """Show a progress bar on a terminal; yield what counts one program."""
    if not rounds or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("building and running", total=rounds)
        yield lambda: progress.advance(task)
