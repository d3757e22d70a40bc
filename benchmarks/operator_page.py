"""The tables of docs/figures.md that show the figures of `operators.json` beside their goals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.operator_models import Kind
from benchmarks.operator_rows import ROWS, Case, Row
from benchmarks.operators import BOARDS, WITH_GOALS, Price, Prices, nearness, read_recorded

PAGE = Path(__file__).parent.parent / "docs" / "figures.md"
_MARKS = ("<!-- operators -->\n", "<!-- end of operators -->\n")


def renewed(page: str, found: Prices) -> str:
    """Return a page whose tables of operators are those of these figures."""
    before, rest = page.split(_MARKS[0])
    _, after = rest.split(_MARKS[1])
    return f"{before}{_MARKS[0]}\n{section(found)}\n{_MARKS[1]}{after}"


def write() -> None:
    """Write what is recorded into the page."""
    PAGE.write_text(renewed(PAGE.read_text("utf-8"), read_recorded()), encoding="utf-8")


def section(found: Prices) -> str:
    """Return the tables: int8 with awkward channels, other kinds, CPUs without goals."""
    said = [f"{cpu}: {nearness(found.get(cpu, {}))}." for cpu in WITH_GOALS]
    parts = ["\n".join(said) + "\n", _of_int8(found)]
    kinds = [kind for kind in Kind if kind is not Kind.INT8]
    parts += [f"### {kind.value}\n\n{_of_kind(kind, found)}" for kind in kinds]
    others = [cpu for cpu in BOARDS if cpu not in WITH_GOALS and found.get(cpu)]
    if others:
        parts.append(f"### int8 on CPUs without goals\n\n{_without_goals(others, found)}")
    return "\n".join(parts)


def _of_int8(found: Prices) -> str:
    head = ["int8", "unit"]
    for name in ("M4", "M55"):
        head += [name, "goal", "stated", "other channels"]
    return _table(head, (
        [row.name, row.unit.value, *(
            cell for cpu in WITH_GOALS
            for cell in (*_cells(row, found[cpu]), _others(row, found[cpu]))
        )]
        for row in ROWS if Kind.INT8 in row.goals
    ))  # fmt: skip


def _cells(row: Row, prices: Mapping[str, Price], kind: Kind = Kind.INT8) -> tuple[str, str, str]:
    """Return what a row takes, its goal, and the part of it that planning states."""
    price = prices.get(Case(row, kind, row.channels).full_name)
    if price is None:
        return "", "", ""
    return _count(price.per_unit), _count(price.goal), f"{price.said:.2f}"


def _others(row: Row, prices: Mapping[str, Price]) -> str:
    """Return what a row takes at awkward numbers of channels."""
    known = ((c, prices.get(Case(row, Kind.INT8, c).full_name)) for c in row.awkward)
    return ", ".join(f"{c}: {_count(price.per_unit)}" for c, price in known if price is not None)


def _of_kind(kind: Kind, found: Prices) -> str:
    head = ["operator", "unit"]
    for name in ("M4", "M55"):
        head += [name, "goal", "stated"]
    return _table(head, (
        [row.name, row.unit.value, *(
            cell for cpu in WITH_GOALS for cell in _cells(row, found[cpu], kind)
        )]
        for row in ROWS if kind in row.goals
    ))  # fmt: skip


def _without_goals(cpus: Sequence[str], found: Prices) -> str:
    return _table(["operator", "unit", *cpus], (
        [row.name, row.unit.value, *(_cells(row, found[cpu])[0] for cpu in cpus)]
        for row in ROWS if Kind.INT8 in row.goals
    ))  # fmt: skip


def _count(figure: float | None) -> str:
    return "" if figure is None else f"{figure:.3g}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
