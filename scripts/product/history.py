"""A hook of mkdocs: docs/history.md shows what the commits recorded of the reference models.

The figures are those of `benchmarks/*.json` in each commit that changed them, read from git while
the site is built.  A shallow clone has the commits that it has, and a tree without git its own
files: one point.
"""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = "history.md"
PLACE = "<!-- what was recorded -->"
"""The line of the page in whose place the tables stand on the site."""

BOARD = "mps2_an386"  # a Cortex-M4: every model fits
_BOARDS, _SIZES = "benchmarks/boards.json", "benchmarks/recorded.json"
_WIDTH, _HEIGHT, _EDGE = 160, 40, 3


@dataclass(frozen=True, slots=True)
class Point:
    """A figure as a commit recorded it; `commit` is empty for what is not committed."""

    commit: str
    date: str
    value: int


History = Mapping[str, Sequence[Point]]
"""The points of each model, the oldest first, without those that repeat the one before."""


def versions(path: str, root: Path = ROOT) -> Iterator[tuple[str, str, Any]]:
    """Yield the contents of a JSON file by commit and date, the oldest first, today's last."""
    for line in _git(root, "log", "--reverse", "--format=%h %cs", "--", path).splitlines():
        commit, date = line.split()
        if text := _git(root, "show", f"{commit}:{path}"):
            yield commit, date, json.loads(text)
    yield "", "today", json.loads((root / path).read_text("utf-8"))


def _git(root: Path, *arguments: str) -> str:
    """Return what git prints, nothing where there is no git or no repository."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False)
    except FileNotFoundError:
        return ""
    return "" if done.returncode else done.stdout.decode()


def instructions(recorded: Any) -> dict[str, int]:
    """Return instructions of an inference by model, of one version of the figures of boards."""
    models = (models for models in recorded.get(BOARD, {}).values())
    return {name: of["instructions"] for some in models for name, of in some.items()}


def flash(recorded: Any) -> dict[str, int]:
    """Return code and weights by model, of one version of the recorded sizes."""
    return {name: of["code"] + of["weights"] for name, of in recorded.items()}


def workspace(recorded: Any) -> dict[str, int]:
    """Return the workspace by model, of one version of the recorded sizes."""
    return {name: of["workspace"] for name, of in recorded.items()}


TABLES = (
    ("Instructions of an inference", _BOARDS, instructions),
    ("Flash, bytes", _SIZES, flash),
    ("Workspace, bytes of RAM", _SIZES, workspace),
)


def history(recorded: Iterator[tuple[str, str, Any]], of: Any) -> History:
    """Return the points of each model, sorted by name."""
    found = defaultdict[str, list[Point]](list)
    for commit, date, content in recorded:
        for name, value in of(content).items():
            points = found[name]
            if not points or points[-1].value != value:
                points.append(Point(commit, date, value))
    return {name: found[name] for name in sorted(found)}


def line(name: str, points: Sequence[Point]) -> str:
    """Return the picture of a figure: a step at each commit, from nothing to the largest value."""
    most = max(point.value for point in points) or 1
    step = (_WIDTH - 2 * _EDGE) / len(points)
    spots = [
        (_EDGE + step * n, _HEIGHT - _EDGE - (_HEIGHT - 2 * _EDGE) * point.value / most)
        for n, point in enumerate(points)
    ]
    corners = [(x + dx, y) for x, y in spots for dx in (0, step)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="currentColor">'
        f"<title>{point.value:,} {escape(point.commit)} {point.date}</title></circle>"
        for (x, y), point in zip(spots, points, strict=True)
    )
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(name)}: '
        f'{points[0].value:,} to {points[-1].value:,}"><polyline points="{path}" fill="none" '
        f'stroke="currentColor"/>{dots}</svg>'
    )


def table(title: str, figures: History) -> str:
    """Return a heading and a row for each model: line, first and last figure, and change."""
    rows = "".join(map(_row, figures, figures.values()))
    titles = ("Model", "Over commits", "Since", "Then", "Now", "Change")
    heads = "".join(f"<th>{head}</th>" for head in titles)
    return (
        f"## {title}\n\n<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}"
        "</tbody>\n</table>\n"
    )


def _row(name: str, points: Sequence[Point]) -> str:
    first, last = points[0], points[-1]
    cells = (
        escape(name),
        line(name, points),
        first.date.replace("-", "&#8209;"),  # on one line
        f"{first.value:,}",
        f"{last.value:,}",
        f"{100 * (last.value / (first.value or 1) - 1):+.1f} %",
    )
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>\n"


def tables(root: Path = ROOT) -> str:
    """Return all tables as the text of a page."""
    return "\n".join(table(title, history(versions(path, root), of)) for title, path, of in TABLES)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the text of the page of the history with its tables; others stay as they are."""
    return markdown.replace(PLACE, tables()) if page.file.src_uri == PAGE else markdown
