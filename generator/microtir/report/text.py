"""Draws the report in a terminal with characters; ASCII, so that it survives any pipe."""

from __future__ import annotations

import string
from itertools import pairwise

from microtir.report.data import FINISH, Report, ReportedPool
from microtir.report.summary import number

_KEYS = string.ascii_lowercase + string.ascii_uppercase
_LINES = 16
_COLUMNS = 72  # of the picture, where there is room
_LEAST_COLUMNS = 24
_WIDEST = 4
_FREE = "."
_SHARED = "#"


def memory_map(report: Report, pool: ReportedPool, width: int = 0) -> list[str]:
    """Draw a pool: steps from left to right, offset 0 at the bottom.

    A cell shows the buffer that keeps most of its bytes at its steps, or that two of them take
    turns there row by row.

    Args:
        report: the compiled model.
        pool: one of its pools.
        width: columns of the terminal, 0 where nothing says how many.
    """
    if not pool.size:
        return ["the model needs no workspace"]
    keys = {b.name: _KEYS[i % len(_KEYS)] for i, b in enumerate(pool.buffers)}
    digits = len(number(pool.size))
    room = width - digits - len("  ") - len(" exceeds a limit")
    most = max(_LEAST_COLUMNS, min(_COLUMNS, room)) if width else _COLUMNS
    columns = _columns(len(report.steps), most)
    cell = max(1, min(_WIDEST, most // len(columns)))
    edges = [pool.size * line // _LINES for line in range(_LINES + 1)]
    lines = [(low, high) for low, high in pairwise(edges) if high > low]
    drawn = []
    for low, high in reversed(lines):
        cells = (_cell(pool, keys, steps, low, high) * cell for steps in columns)
        drawn.append(f"{number(high):>{digits}} |{''.join(cells)}|")
    margin = " " * digits
    drawn.append(f"{0:>{digits}} +{'-' * cell * len(columns)}+")
    drawn += [f"{margin}  {line}" for line in _axis(report, columns, cell)]
    drawn.append(f"{margin}  {_mark(pool, columns, cell)}")
    if any(layer.exceeds for layer in report.layers):
        drawn.append(f"{margin}  {_exceeding(report, columns, cell)}")
    legend = _legend(pool, keys, drawn, min(width or _COLUMNS, _COLUMNS))
    return [line.rstrip() for line in drawn] + legend


def _columns(steps: int, most: int) -> list[range]:
    """Return the steps of each column: one, or several where there are more than fit."""
    per = -(-steps // most)
    return [range(first, min(first + per, steps)) for first in range(0, steps, per)]


def _cell(pool: ReportedPool, keys: dict[str, str], steps: range, low: int, high: int) -> str:
    taken: dict[str, int] = {}
    for buffer in pool.buffers:
        for span in buffer.spans:
            common = min(high, span.high) - max(low, span.low)
            if common > 0 and span.first < steps.stop and span.last >= steps.start:
                taken[buffer.name] = max(taken.get(buffer.name, 0), common)
    if not taken:
        return _FREE
    most = max(taken, key=lambda name: taken[name])
    # In one step two buffers lie over each other only if rows of one follow rows of the other.
    is_shared = len(steps) == 1 and sum(taken.values()) > high - low
    return _SHARED if is_shared else keys[most]


def _axis(report: Report, columns: list[range], cell: int) -> list[str]:
    """Return the labels of the layers, downwards if they do not fit side by side."""
    labels = [report.steps[steps.start].label for steps in columns]
    longest = max(map(len, labels))
    if longest < cell:
        lines = ["".join(f"{label:<{cell}}" for label in labels)]
    else:
        padded = [label.rjust(longest) for label in labels]
        lines = ["".join(f"{label[i]:<{cell}}" for label in padded) for i in range(longest)]
    lines[-1] += " layer"
    if report.streams:
        lines.append("".join(_band(report, steps, cell) for steps in columns) + " by rows")
    return lines


def _band(report: Report, steps: range, cell: int) -> str:
    inside = any(s.first < steps.stop and s.last >= steps.start for s in report.streams)
    ends = any(steps.start <= s.last < steps.stop for s in report.streams)
    if not inside:
        return " " * cell
    return "=" * (cell - 1) + ("]" if ends else "=")


def _mark(pool: ReportedPool, columns: list[range], cell: int) -> str:
    marks = "".join(("^" if pool.peak_step in steps else " ").ljust(cell) for steps in columns)
    return f"{marks} peak"


def _exceeding(report: Report, columns: list[range], cell: int) -> str:
    """Put an exclamation mark under each layer that breaks a limit."""
    over = {layer.number for layer in report.layers if layer.exceeds}
    numbers = [{report.steps[step].label.removesuffix(FINISH) for step in c} for c in columns]
    marks = "".join(("!" if over & layers else " ").ljust(cell) for layers in numbers)
    return f"{marks} exceeds a limit"


def _legend(pool: ReportedPool, keys: dict[str, str], drawn: list[str], width: int) -> list[str]:
    """Return what the letters mean, as many to a line as fit."""
    entries = [f"{keys[b.name]} {b.name}" for b in pool.buffers]
    if any(_SHARED in line for line in drawn):
        entries.append(f"{_SHARED} two buffers, row by row")
    lines = [""]
    for entry in entries:
        if lines[-1] and len(lines[-1]) + len(entry) + 3 > width:
            lines.append("")
        lines[-1] += ("   " if lines[-1] else "") + entry
    return ["", *lines]
