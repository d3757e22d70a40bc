"""Writes results to stdout, and all else to stderr."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import typer

from microtir.support.files import replace_file

READER_GONE = 141  # what a shell reports for a program that SIGPIPE ended

_UNLIMITED = 100_000  # columns of a table that goes to a file or a pipe: nothing is cut
_GAP = 3  # spaces between columns
NO_BREAK = "\x1f"
"""A space at which `write_text` does not fold."""

_LEAST = 20  # columns for text that folds: with fewer it cannot be read

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
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    right: Sequence[str] = (),
    spare: Sequence[str] = (),
) -> None:
    """Write a table with aligned columns; those named in `right` are numbers.

    In a file or a pipe every row is one line, unless COLUMNS says how wide it is. On a terminal
    that is too narrow the columns in `spare` are left out, the first of them first, and a line
    says so; the last column folds, and the others only if that is not enough.
    """
    write("\n".join(table_lines(columns, rows, right, spare, terminal_width() or _UNLIMITED)))


def terminal_width() -> int:
    """Return the width of the terminal, or what COLUMNS says of a pipe; 0 where nothing does."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        return shutil.get_terminal_size().columns
    return 0


def table_lines(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    right: Sequence[str],
    spare: Sequence[str],
    width: int,
) -> list[str]:
    """Return the lines of a table, as `write_table` has it in so many columns of a terminal."""
    cells = [[cell(value) for value in row] for row in rows]
    widths = _widths(columns, cells)
    shown, left_out = list(columns), []
    while sum(widths[c] for c in shown) + _GAP * (len(shown) - 1) > width:
        rest = sum(widths[c] for c in shown[:-1]) + _GAP * (len(shown) - 1)
        if shown[-1] not in right and width - rest >= _LEAST:
            widths[shown[-1]] = width - rest
            break
        column = next((c for c in spare if c in shown), None)
        if column is None:
            widths = {}
            break
        shown.remove(column)
        left_out.append(column)
    places = [columns.index(c) for c in shown]
    lines = _fitting(shown, [[row[i] for i in places] for row in cells], right, widths, width)
    if left_out:
        named = ", ".join(c for c in columns if c in left_out)
        lines += textwrap.wrap(f"not shown in {width} columns: {named}", width)
    return lines


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[str, int]:
    """Return how wide each column has to be for no cell to fold."""
    return {c: max(len(c), *(len(row[i]) for row in rows), 0) for i, c in enumerate(columns)}


def _fitting(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[str],
    widths: Mapping[str, int],
    width: int,
) -> list[str]:
    """Return what fits the width; columns without a width of their own share it."""
    from rich.box import Box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    text = io.StringIO()
    is_terminal = sys.stdout.isatty()
    console = Console(file=text, force_terminal=is_terminal, width=width, highlight=False)
    table = Table(box=Box(_RULE, ascii=True), pad_edge=False, show_edge=False)
    for column in columns:
        justify: Literal["left", "right"] = "right" if column in right else "left"
        table.add_column(column, justify=justify, overflow="fold", width=widths.get(column))
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def write_text(text: str, begin: str = "", then: str = "") -> None:
    """Write a sentence, folded at spaces to the columns of the terminal or of COLUMNS.

    Args:
        text: the words.
        begin: what stands in front of the first line.
        then: what stands in front of every other line.
    """
    lines = textwrap.wrap(
        text,
        max(terminal_width() or _UNLIMITED, _LEAST),
        initial_indent=begin,
        subsequent_indent=then,
        break_long_words=False,
        break_on_hyphens=False,
    )
    write("\n".join(lines or [begin.rstrip()]).replace(NO_BREAK, " "))


def cell(value: object) -> str:
    """Return a value as people read it: thousands apart, shapes as 1x49x10x1."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: ""}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, tuple):
        return shape(value)
    return str(value)


def shape(extents: Sequence[int]) -> str:
    """Return a shape as 1x49x10x1; that of a scalar as `scalar`."""
    return "x".join(map(str, extents)) or "scalar"


def facts(rows: Sequence[tuple[str, object]]) -> None:
    """Write pairs, the names in one column; on a terminal long ones go on below their begin.

    A word without spaces that only a whole line has room for stands on a line of its own.
    """
    margin = max(len(name) for name, _ in rows) + 2
    width = terminal_width()
    for name, value in rows:
        text, begin = cell(value), f"{name:<{margin}}"
        if width - margin < _LEAST:
            write(f"{begin}{text}".rstrip())
        elif width - margin < len(text) <= width - 2 and " " not in text:
            write(f"{name}\n  {text}")
        else:
            write_text(text, begin, " " * margin)
