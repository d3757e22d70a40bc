"""Makes the report one page: no script or style from elsewhere, so that it works anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest

from microtir.quantise.summary import Summary
from microtir.report import quantisation, summary
from microtir.report.data import BufferKind, Report, ReportedPool
from microtir.report.geometry import Drawing, draw
from microtir.report.summary import TextTable, number
from microtir.support.templates import render_page

_WITH_BARS = ("executed", "weights", "instructions", "est. instr.", "bytes", "SQNR dB")
_CULPRITS = 8  # buffers that are named beside the map

_KINDS = {
    BufferKind.ACTIVATION: "activation: a whole tensor",
    BufferKind.RING: "ring: a few rows of a tensor",
    BufferKind.SCRATCH: "scratch of a kernel",
    BufferKind.SUMS: "sums of a reduction",
    BufferKind.INPUT: "input",
    BufferKind.OUTPUT: "output",
}

_COLUMNS = {
    "layer": "number in the model file",
    "kernel": "how it is computed; by rows: row by row, alternating with its neighbours",
    "MACs": "multiply-accumulates of the layer in the model file",
    "executed": "multiply-accumulates that are left when constant channels are folded",
    "est. instr.": "estimated instructions on the target; `microtir profile` measures them",
    "instructions": "measured",
    "weights": "bytes of flash for weights, biases and tables",
    "SQNR dB": "power of a layer's float results, divided by the power of its quantisation error",
    "bytes in": "size of the inputs",
    "bytes out": "size of the outputs",
    "offset": "first byte in the pool",
    "layers": "first and last layer that need the buffer",
}


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell of a table; `share` is the part of the column's largest, for a bar behind it."""

    text: str
    kind: str  # CSS classes
    share: str


@dataclass(frozen=True, slots=True)
class _Head:
    """The head of a column, with what it means."""

    text: str
    kind: str  # CSS classes
    note: str


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of cells, what pointing at them shows, and whether it is one to be seen."""

    cells: tuple[_Cell, ...]
    tip: str
    is_marked: bool = False


@dataclass(frozen=True, slots=True)
class _Rows:
    """A table for the page; what pointing at a row shows may be empty."""

    columns: tuple[_Head, ...]
    rows: tuple[_Row, ...]
    sums: tuple[_Row, ...]


@dataclass(frozen=True, slots=True)
class _Culprit:
    """A buffer that is in use at the peak, or what is left of them; with its part of all."""

    name: str
    kind: str
    content: str
    bytes: str
    share: str


@dataclass(frozen=True, slots=True)
class _Map:
    """A pool with its drawing."""

    name: str
    peak: str
    culprits: tuple[_Culprit, ...]
    drawing: Drawing
    kinds: tuple[tuple[str, str], ...]  # with what they mean
    is_partial: bool
    buffers: _Rows


class Part(Enum):
    """A part of the page that others show by itself; the value is its template."""

    HEADLINE = "headline"
    SUMMARY = "summary"
    MAPS = "maps"
    LAYERS = "layers"


def to_html(report: Report) -> str:
    """Return the page; the same report gives the same bytes."""
    return render_page(
        "report/page.html.j2",
        title=report.file or report.model,
        fits="" if not report.limits else "fits" if report.fits else "does not fit",
        generator=report.generator,
        largest=_rows(summary.largest_table(report)),
        options=report.options,
        cost=None if report.quantisation is None else _cost(report.quantisation),
        **_parts(report),
    )


def to_part(report: Report, part: Part) -> str:
    """Return a part of the page as the elements that it has there."""
    return render_page(f"report/{part.value}.html.j2", **_parts(report))


def to_grid(table: TextTable, kind: str) -> str:
    """Return a table as the page shows it; `kind` are its CSS classes."""
    return render_page("report/grid.html.j2", table=_rows(table), kind=kind)


def to_cost(price: Summary) -> str:
    """Return what integers cost as the elements that the page has for it."""
    return render_page("report/quantisation.html.j2", cost=_cost(price))


def _cost(price: Summary) -> dict[str, object]:
    return {
        "headline": quantisation.headline(price),
        "facts": quantisation.facts(price),
        "layers": _rows(quantisation.layer_table(price)),
        "notes": quantisation.notes(price),
    }


def _parts(report: Report) -> dict[str, object]:
    return {
        "headline": summary.headline(report),
        "facts": summary.facts(report),
        "measured": summary.profile_facts(report),
        "maps": _maps(report),
        "layers": _rows(summary.layer_table(report), summary.layer_reasons(report), has_sum=True),
        "has_reasons": any(layer.choice for layer in report.layers),
    }


def _maps(report: Report) -> list[_Map]:
    maps = []
    for pool in report.pools:
        if not pool.buffers:
            continue
        drawing = draw(report, pool)
        kinds = {buffer.kind for buffer in pool.buffers} | {port.kind for port in report.ports}
        maps.append(
            _Map(
                name=pool.name,
                peak=report.layer_of(pool.peak_step),
                culprits=_culprits(pool),
                drawing=drawing,
                kinds=tuple((k.value, text) for k, text in _KINDS.items() if k in kinds),
                is_partial=any("partial" in box.kind for box in drawing.boxes),
                buffers=_rows(summary.buffer_table(report, pool.buffers)),
            )
        )
    return maps


def _culprits(pool: ReportedPool) -> tuple[_Culprit, ...]:
    """Return what the peak is made of, the largest first, small parts put together."""
    buffers = summary.at_peak(pool)
    total = sum(buffer.at_peak for buffer in buffers)
    shown = buffers if len(buffers) <= _CULPRITS else buffers[: _CULPRITS - 1]
    rows = [(b.name, b.kind.value, b.content, b.at_peak) for b in shown]
    if rest := buffers[len(shown) :]:
        rows.append(("", "", f"{len(rest)} smaller ones", sum(b.at_peak for b in rest)))
    return tuple(
        _Culprit(name, kind, content, number(size), f"{100 * size / total:.0f} %")
        for name, kind, content, size in rows
    )


def _rows(table: TextTable, tips: Sequence[str] = (), *, has_sum: bool = False) -> _Rows:
    kinds = [_kind(column, table) for column in table.columns]
    columns = tuple(
        _Head(c, k, _COLUMNS.get(c, "")) for c, k in zip(table.columns, kinds, strict=True)
    )
    compared = table.rows[:-1] if has_sum else table.rows
    most = [
        max((_value(row[i]) for row in compared), default=0) if c in _WITH_BARS else 0
        for i, c in enumerate(table.columns)
    ]
    rows = tuple(
        _Row(
            tuple(
                _Cell(text, kind, _share(text, largest) if row in compared else "")
                for text, kind, largest in zip(row, kinds, most, strict=True)
            ),
            tip,
            place == table.marked,
        )
        for place, (row, tip) in enumerate(zip_longest(table.rows, tips, fillvalue=""))
    )
    end = len(compared)
    return _Rows(columns, rows[:end], rows[end:])


def _kind(column: str, table: TextTable) -> str:
    if column == summary.EXCEEDS:
        return "exceeded"
    return "number" if column in table.right else ""


def _value(text: str) -> float:
    digits = text.replace(",", "")
    return float(digits) if digits.replace(".", "", 1).isdigit() else 0


def _share(text: str, largest: float) -> str:
    return f"{100 * _value(text) / largest:.1f}%" if largest and _value(text) else ""
