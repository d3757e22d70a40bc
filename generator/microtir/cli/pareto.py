"""`microtir pareto` shows what less RAM costs on a board."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli.board_options import Board, FiguresFile, Timeout, board_compiler
from microtir.cli.model import Model, read_model
from microtir.cli.output import write, write_json, write_table
from microtir.cli.progress import Progress
from microtir.config import CompilationConfig
from microtir.config.processors import for_processors
from microtir.errors import ExitCode
from microtir.support.files import replace_file

if TYPE_CHECKING:
    from microtir.artifact import Artifact
    from microtir.boards import Board as BoardFacts
    from microtir.search.pareto import Frontier, ProgramCost


def pareto(
    model: Model,
    config: CompilationConfig,
    board: Board,
    points: Annotated[
        int,
        typer.Option(
            "--points",
            metavar="N",
            min=1,
            max=64,
            help="Number of budgets to try for RAM, and for flash.",
        ),
    ] = 6,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE.svg", help="Draws instructions over RAM."),
    ] = None,
    json: FiguresFile = None,
    timeout: Timeout = 300.0,
) -> ExitCode:
    """Measures how instructions and flash grow if a plan needs less RAM, on an emulated board.

    It builds and measures the model with every value of --optimize, and with budgets of RAM and
    flash between the fastest and the smallest program. For each program it prints RAM without
    the stack, instructions, flash, and the flags that select the program.
    """
    from microtir.boards import load_board
    from microtir.search.pareto import pareto as search

    chosen = load_board(board)
    with Progress() as progress:
        progress.show("reading the model")
        module = read_model(model, config)
        frontier = search(
            module, config, lambda a: _cost(a, chosen, timeout), points, progress.show,
            board_compiler(board, config),
        )  # fmt: skip
    name = module.graph.name if module.graph else model
    title = f"{name} {for_processors(config.targets)} on {chosen.name}"
    if plot is not None:
        from microtir.search.chart import picture_of
        from microtir.search.picture import to_svg

        replace_file(plot, to_svg(picture_of(frontier, title)).encode())
    if json is not None:
        write_json(_facts(frontier, title), json)
    if str(json) != "-":
        _print(frontier, title)
    return ExitCode.DONE


def _cost(artifact: Artifact, board: BoardFacts, timeout: float) -> ProgramCost:
    from microtir.profiling.profile import profile
    from microtir.search.pareto import ProgramCost

    result = profile(artifact, board, timeout=timeout)
    return ProgramCost(
        ram=result.ram.of_model,
        instructions=result.instructions,
        cycles=result.cycles,
        flash=result.code + result.weights,
        macs_recomputed=result.macs_recomputed,
        cycles_are_exact=result.cycles_are_exact,
        compiler=result.compiler,
    )


def _facts(frontier: Frontier, title: str) -> dict[str, object]:
    return {
        "title": title,
        "measure": frontier.measure.value,
        "compilers": list(_compilers(frontier)),
        "trials": [
            {
                "flags": trial.flags,
                "ram": trial.cost.ram,
                "instructions": trial.cost.instructions,
                "cycles_estimate": trial.cost.cycles,
                "cycles_are_exact": trial.cost.cycles_are_exact,
                "flash": trial.cost.flash,
                "macs_recomputed": trial.cost.macs_recomputed,
                "on_frontier": frontier.is_best(trial),
            }
            for trial in frontier.trials
        ],
    }


def _print(frontier: Frontier, title: str) -> None:
    from microtir.search.frontier_table import frontier_columns, frontier_right, frontier_rows

    write(f"{title}: bytes of RAM without the stack, instructions of one inference, bytes of flash")
    write(f"measured: RAM, flash and instructions, compiled by {', '.join(_compilers(frontier))}")
    write(
        f"frontier: programs that no other program beats in RAM, flash and {frontier.measure.value}"
    )
    write("")
    write_table(frontier_columns(frontier), frontier_rows(frontier), frontier_right(frontier))


def _compilers(frontier: Frontier) -> tuple[str, ...]:
    """Return the compilers that measured; one, unless a board asks for several."""
    return tuple(dict.fromkeys(trial.cost.compiler for trial in frontier.trials))
