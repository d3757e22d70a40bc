"""The recorded losses as a section of the page on quantisation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "benchmarks" / "quantise.json"
PAGE = ROOT / "docs" / "quantise.md"
_MARKS = ("<!-- losses -->\n", "<!-- end of losses -->\n")

Figures: TypeAlias = Mapping[str, Any]
"""The content of `RECORDED`."""


def read_recorded() -> Figures:
    """Return what was recorded."""
    figures: Figures = json.loads(RECORDED.read_text("utf-8"))
    return figures


def renewed(page: str, figures: Figures) -> str:
    """Return the page with the tables that the figures give."""
    before, rest = page.split(_MARKS[0])
    _, behind = rest.split(_MARKS[1])
    return f"{before}{_MARKS[0]}{section(figures)}{_MARKS[1]}{behind}"


def write() -> None:
    """Write the recorded figures into the page."""
    PAGE.write_text(renewed(PAGE.read_text("utf-8"), read_recorded()), "utf-8")


def section(figures: Figures) -> str:
    """Return the tables: losses, and what a run takes."""
    networks = figures["networks"]
    names = [
        name for name in dict.fromkeys(chain.from_iterable(networks.values())) if name != "float"
    ]
    losses = (
        [network, _score(by_name["float"]["score"]), *(_loss(by_name.get(name)) for name in names)]
        for network, by_name in networks.items()
    )
    prices = (
        [network, *(_price(by_name.get(name)) for name in names)]
        for network, by_name in networks.items()
    )
    return f"""
Loss, and its standard deviation over {figures["seeds"]} splits of the data and seeds: points of
percent that are classified right less than in floats; of diabetes the percent by which the mean
squared error grows. `bits by layer` chooses weights of 4 or 8 bits for each layer on a fifth of the
calibration samples, with at most half a point lost there; behind its loss stands the mean share of
the weight bytes of int8.

{_table(["network", "float", *names], losses)}
Instructions on QEMU for a Cortex-M4 (`balanced`), and bytes of flash, of the first split's network:

{_table(["network", *names], prices)}
"""


def _score(score: float) -> str:
    return f"{score:.2f}"


def _loss(one: Mapping[str, Any] | None) -> str:
    if one is None:
        return ""
    weights = one.get("weights")
    share = "" if weights is None else f"; {weights:.2f}"
    return f"{one['loss']:.3f} ± {one['deviation']:.3f}{share}"


def _price(one: Mapping[str, Any] | None) -> str:
    if one is None:
        return ""
    price = one["price"]
    instructions = f"{price['instructions']:,}; " if price["instructions"] else ""
    return f"{instructions}{price['flash']:,}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
