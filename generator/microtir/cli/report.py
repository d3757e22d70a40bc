"""`microtir report` shows what a model takes, over time and layer by layer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli.board_options import LimitingBoard, compiler_of
from microtir.cli.building import quantised
from microtir.cli.model import Model, read_model
from microtir.cli.models import AsJson
from microtir.cli.output import facts, terminal_width, write, write_json, write_table
from microtir.cli.progress import Progress
from microtir.cli.quantise_options import with_quantiser
from microtir.cli.quantised import print_cost_below
from microtir.cli.quantiser import Quantiser
from microtir.config import CompilationConfig
from microtir.errors import ExitCode
from microtir.support.files import replace_file

if TYPE_CHECKING:
    from microtir.module.ir_module import IRModule
    from microtir.profiling import BoardCompiler
    from microtir.report.collect import LimitsOf
    from microtir.report.data import Report
    from microtir.report.summary import TextTable


@with_quantiser
def report(
    model: Model,
    config: CompilationConfig,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.html",
            help="Writes one self-contained page, and prints only the summary.",
        ),
    ] = None,
    profile: Annotated[
        Path | None,
        typer.Option(
            "--profile",
            metavar="FILE.json",
            help="Adds figures that `microtir profile MODEL --json FILE.json` measured.",
        ),
    ] = None,
    board: LimitingBoard = None,
    quantiser: Quantiser | None = None,
    as_json: AsJson = False,
) -> ExitCode:
    """Shows the memory of a model over time, its layers, and whether it fits.

    Exit status 1 means that a limit is exceeded. The report then states the excess, the layers
    that cause it, and options that would help.
    """  # fmt: skip
    from microtir.report.collect import describe
    from microtir.report.html import to_html
    from microtir.report.profile import read_profile

    measured = read_profile(profile) if profile else None
    with Progress() as progress:
        progress.show("reading the model")
        module = read_model(model, config)
        price = None
        if quantiser is not None:
            module, by = quantised(module, quantiser, progress)
            progress.show("measuring what it costs")
            price = by.summary()
        progress.show("compiling")
        compiler = compiler_of(board)
        result = describe(module, measured, compiler=compiler, limits_of=_limits_of(board))
        result = replace(result, quantisation=price)
        if not result.fits:
            progress.show("trying what would help")
            result = replace(result, tried=_remedies(result, module, board, compiler))
    if output is not None:
        # A file's name may be no text.
        replace_file(output, to_html(result).encode(errors="backslashreplace"))
    if as_json:
        write_json(result.to_dict())
    else:
        _print(result, summary_only=output is not None)
    return ExitCode.DONE if result.fits else ExitCode.ANSWER_IS_NO


def _remedies(
    result: Report, module: IRModule, board: str | None, compiler: BoardCompiler | None
) -> tuple[str, ...]:
    """Return what would help a model that does not fit: the limit of an option, else the board."""
    from microtir.search.refusals import board_remedy, limit_error, with_suggestions

    errors = (limit_error(limit, result) for limit in result.limits if limit.free < 0)
    error = next((error for error in errors if error is not None), None)
    if error is not None:
        return with_suggestions(error, module, board, compiler).tried
    return () if board is None else board_remedy(module, board)


def _limits_of(board: str | None) -> LimitsOf | None:
    """Return the memories of a board as limits; None without a board."""
    if board is None:
        return None
    from microtir.boards import load_board
    from microtir.report.board_limits import limits_of_board

    return limits_of_board(load_board(board))


def _print(report: Report, *, summary_only: bool) -> None:
    from microtir.report import summary
    from microtir.report.text import memory_map

    facts([*summary.facts(report), *summary.profile_facts(report)])
    if report.quantisation is not None:
        print_cost_below(report.quantisation)
    write("")
    _table(summary.largest_table(report))
    if summary_only:
        return
    for pool in report.pools:
        write("")
        if len(report.pools) > 1:
            write(f"pool {pool.name}")
        write("\n".join(memory_map(report, pool, terminal_width())))
        write("")
        _table(summary.buffer_table(report, pool.buffers))
    write("")
    _table(summary.layer_table(report))
    if any(layer.own_loop for layer in report.layers):
        write("")
        _table(summary.loop_table(report))


def _table(table: TextTable) -> None:
    write_table(table.columns, table.rows, right=tuple(sorted(table.right)), spare=table.spare)
