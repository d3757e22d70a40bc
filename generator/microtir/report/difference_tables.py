"""Words the difference of two programs as tables, for the terminal, Markdown and the studio."""

from __future__ import annotations

from microtir.report.difference import Change, Difference, Figure
from microtir.report.summary import TextTable

ESTIMATED = (
    "Instructions, code and stack are estimates of planning; RAM is workspace, state, stack."
)
_COLUMNS = ("before", "after", "change", "")
_NUMBERS = frozenset(_COLUMNS)


def figure_table(difference: Difference) -> TextTable:
    """Return one row per figure, but for those that neither program has."""
    optional = (Figure.STATE.value, Figure.MACS.value)
    shown = [c for c in difference.figures if c.name not in optional or c.before or c.after]
    return TextTable(("figure", *_COLUMNS), tuple(map(_row, shown)), _NUMBERS)


def layer_table(difference: Difference) -> TextTable:
    """Return one row per layer that changed."""
    rows = tuple((*_row(change), change.note) for change in difference.layers)
    return TextTable(("layer", *_COLUMNS, "kernel"), rows, _NUMBERS)


def config_table(difference: Difference) -> TextTable:
    """Return one row per field of the configuration that differs."""
    rows = tuple((name, *values) for name, values in difference.config.items())
    return TextTable(("option", "before", "after"), rows, frozenset())


def percent(change: Change) -> str:
    """Return by how much a figure has grown; empty where that has no meaning."""
    return "" if change.percent is None else f"{change.percent:+.1f} %"


def _row(change: Change) -> tuple[str, ...]:
    numbers = map(_number, (change.before, change.after))
    return (change.name, *numbers, f"{change.by:+,}", percent(change))


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
