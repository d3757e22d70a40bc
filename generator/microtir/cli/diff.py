"""`microtir diff` compares what two programs take."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli.archive import is_archive, one_program
from microtir.cli.models import AsJson
from microtir.cli.output import write, write_json, write_table
from microtir.cli.progress import Progress
from microtir.config import CompilationConfig, microcontroller
from microtir.errors import DataFileError, ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from microtir.artifact import Metadata
    from microtir.report.difference import Change, Difference, Figure
    from microtir.report.summary import TextTable


_MOST_LAYERS = 20
_HELP = "A model file, an archive in Model Library Format, or a folder that `compile` wrote."

# With a least value no number (nan) is refused, too: nothing is ever more than it.
Limit = Annotated[
    float | None,
    typer.Option(metavar="PERCENT", min=0.0, help="The largest growth with exit status 0."),
]


def diff(
    model: Annotated[str, typer.Argument(metavar="BEFORE", help=_HELP, show_default=False)],
    after: Annotated[str, typer.Argument(metavar="AFTER", help=_HELP, show_default=False)],
    config: CompilationConfig,
    max_ram: Limit = None,
    max_flash: Limit = None,
    max_instructions: Limit = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Prints tables in Markdown, for a pull request.")
    ] = False,
    as_json: AsJson = False,
) -> ExitCode:
    """Compares RAM, flash, instructions and layers of two programs.

    A model file is first compiled with the options of the command. Exit status 1 means that a
    figure grew by more than its limit.
    """
    from microtir.report.difference import Figure, difference

    if markdown and as_json:
        raise UsageError("--markdown and --json cannot be used together", where="microtir diff")
    _check_config(config, (model, after))
    with Progress() as progress:
        changes = difference(*(_facts(source, config, progress) for source in (model, after)))
    limits = {
        Figure.RAM: max_ram,
        Figure.FLASH: max_flash,
        Figure.INSTRUCTIONS: max_instructions,
    }
    exceeded = [
        (figure, limit)
        for figure, limit in limits.items()
        if _exceeds(changes.figure(figure), limit)
    ]
    if as_json:
        write_json(_json(changes, exceeded))
    else:
        _print(changes, exceeded, markdown=markdown)
    return ExitCode.ANSWER_IS_NO if exceeded else ExitCode.DONE


def _is_compiled(source: str) -> bool:
    return is_archive(source) or Path(source).is_dir()


def _check_config(config: CompilationConfig, source: Sequence[str]) -> None:
    """Refuse a configuration where there is nothing to compile."""
    plain = microcontroller().with_(module_name=config.module_name)
    if all(map(_is_compiled, source)) and config != plain:
        raise UsageError(
            "these inputs are compiled already, so options of a configuration have no effect",
            where="microtir diff",
            fix="leave out these options, or pass model files instead",
        )


def _facts(source: str, config: CompilationConfig, progress: Progress) -> Metadata:
    """Return the metadata of a program.

    Raises:
        MicrotirError: it cannot be read, or not be compiled.
    """
    folder = Path(source)
    if not folder.is_dir():
        return one_program(source, config, progress).metadata
    from microtir.artifact import METADATA_FILE, read_metadata

    file = folder / METADATA_FILE
    if not file.is_file():
        raise DataFileError(
            f"the folder has no {METADATA_FILE}",
            where=source,
            legal="a folder that `microtir compile -o` wrote",
        )
    return read_metadata(file.read_bytes())


def _exceeds(change: Change, limit: float | None) -> bool:
    """Return whether a figure has grown by more percent than are allowed."""
    if limit is None or change.by <= 0:
        return False
    return change.percent is None or change.percent > limit


def _json(
    changes: Difference, exceeded: Sequence[tuple[Figure, float | None]]
) -> dict[str, object]:
    def facts(change: Change) -> dict[str, object]:
        return {"name": change.name, "before": change.before, "after": change.after}

    return {
        "figures": [facts(change) for change in changes.figures],
        "layers": [{**facts(change), "kernel": change.note} for change in changes.layers],
        "config": {name: list(values) for name, values in changes.config.items()},
        "exceeded": [figure.value for figure, _ in exceeded],
    }


def _print(
    changes: Difference, exceeded: Sequence[tuple[Figure, float | None]], *, markdown: bool
) -> None:
    from microtir.report.difference_tables import (
        ESTIMATED,
        config_table,
        figure_table,
        layer_table,
        percent,
    )

    _table(figure_table(changes), markdown)
    write(f"\n{ESTIMATED}")
    if changes.layers:
        write(f"\n{len(changes.layers)} layers changed, by estimated instructions:\n")
        layers = layer_table(changes)
        _table(replace(layers, rows=layers.rows[:_MOST_LAYERS]), markdown)
        if len(changes.layers) > _MOST_LAYERS:
            write(f"and {len(changes.layers) - _MOST_LAYERS} more: --json has them")
    if changes.config:
        write("\nCompiled with another configuration:\n")
        _table(config_table(changes), markdown)
    for figure, limit in exceeded:
        change = changes.figure(figure)
        grown = percent(change) or change.by
        write(f"\n{figure.value} has grown by {grown}, the limit is {limit:g} %")


def _table(table: TextTable, markdown: bool) -> None:
    if not markdown:
        write_table(table.columns, table.rows, right=tuple(table.right))
        return
    marks = ["---:" if name in table.right else "---" for name in table.columns]
    for line in (table.columns, marks, *table.rows):
        cells = (cell.replace("|", "\\|").replace("\n", " ") for cell in line)
        write(f"| {' | '.join(cells)} |")
