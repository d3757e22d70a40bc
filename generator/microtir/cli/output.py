"""Where results and diagnostics go: results to stdout, all else to stderr."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from microtir.files import replace_file

READER_GONE = 141  # what a shell reports for a program that SIGPIPE ended

_UNLIMITED = 100_000  # columns of a table that goes to a file or a pipe: nothing is cut

# A line of hyphens below the head and nothing else: it survives every encoding and e-mail.
_RULE = "    \n    \n -- \n    \n    \n    \n    \n    \n"


def write(text: str) -> None:
    """Write lines of a result to stdout.

    Raises:
        typer.Exit: stdout is a pipe that nobody reads any more, as in `microtir options | head`.
    """
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes stdout once more when it exits, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(READER_GONE) from None


def write_error(text: str) -> None:
    """Write lines of a diagnostic to stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def write_json(data: object, path: Path | None = None) -> None:
    """Write JSON to stdout, or to a file.

    Raises:
        OutputError: the file cannot be written.
    """
    text = json.dumps(data, indent=2, allow_nan=False)
    if path is None or str(path) == "-":
        write(text)
        return
    replace_file(path, f"{text}\n".encode())


def write_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], right: Sequence[str] = ()
) -> None:
    """Write a table with aligned columns; those named in `right` are numbers.

    On a terminal it folds to the width; elsewhere every row is one line.
    """
    from rich.box import Box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    is_terminal = sys.stdout.isatty()
    text = io.StringIO()
    console = Console(
        file=text,
        force_terminal=is_terminal,
        width=None if is_terminal else _UNLIMITED,
        highlight=False,
    )
    table = Table(box=Box(_RULE, ascii=True), pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell(value)) for value in row))
    console.print(table)
    write("\n".join(line.rstrip() for line in text.getvalue().splitlines()))


def cell(value: object) -> str:
    """A value as people read it: thousands apart, shapes as 1x49x10x1."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: ""}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, tuple):
        return shape(value)
    return str(value)


def shape(extents: Sequence[int]) -> str:
    """A shape as 1x49x10x1; that of a scalar as `scalar`."""
    return "x".join(map(str, extents)) or "scalar"


def facts(rows: Sequence[tuple[str, object]]) -> None:
    """Write pairs, the names in one column."""
    width = max(len(name) for name, _ in rows)
    write("\n".join(f"{name:<{width}}  {cell(value)}".rstrip() for name, value in rows))
