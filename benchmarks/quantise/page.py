"""The recorded losses as a section of the page on quantisation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import mean, stdev
from typing import Any, TypeAlias

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "benchmarks" / "quantise.json"
PAGE = ROOT / "docs" / "quantise.md"
CRITICAL = 2.09  # of Student's distribution, two-sided, with 19 degrees of freedom
_MARKS = ("<!-- losses -->\n", "<!-- end of losses -->\n")

Figures: TypeAlias = Mapping[str, Any]
"""The content of `RECORDED`."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The best of the others, and by how much microtir loses more, split by split.

    Args:
        best: the name of the quantiser.
        difference: the mean of the differences.
        error: the standard error of that mean.
    """

    best: str
    difference: float
    error: float


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
    splits = figures["seeds"]
    losses = (
        [
            network,
            _score(by_name["float"]["score"]),
            *(_loss(by_name.get(name), splits) for name in names),
        ]
        for network, by_name in networks.items()
    )
    prices = (
        [network, *(_price(by_name.get(name)) for name in names)]
        for network, by_name in networks.items()
    )
    pairs = (
        [network, *_pair(compared(by_name))]
        for network, by_name in networks.items()
        if "microtir" in by_name
    )
    return f"""
The first table shows the loss, and its standard deviation over {splits} splits of data and seeds.
The loss is the accuracy of the float network minus the accuracy of the integers, in percentage
points. For diabetes it is the increase of the mean squared error in percent. `bits by layer`
chooses weights of 4 or 8 bits for each layer. On a fifth of the calibration samples, the loss of
this choice must be at most half a point. The second number in the column is the mean size of the
weights, divided by the size of int8 weights.

{_table(["network", "float", *names], losses)}
The next table shows the loss of microtir minus the loss of the best other quantiser, split by
split. The columns are the mean difference with its standard error, and Student's t. With {splits}
splits a t above {CRITICAL} means that microtir loses more, at a significance level of 5 %.

{_table(["network", "best other quantiser", "difference", "t"], pairs)}
The last table shows instructions in QEMU on a Cortex-M4 (`balanced`) and bytes of flash, for
the network of the first split:

{_table(["network", *names], prices)}
"""


def compared(by_name: Mapping[str, Any]) -> Pair:
    """Compare microtir at int8 with the best of the others that were measured on all splits."""
    own = by_name["microtir"]["losses"]
    others = {
        name: one["losses"]
        for name, one in by_name.items()
        if not name.startswith(("float", "microtir")) and len(one["losses"]) == len(own)
    }
    best = min(others, key=lambda name: mean(others[name]))
    differences = [ours - theirs for ours, theirs in zip(own, others[best], strict=True)]
    return Pair(best, mean(differences), stdev(differences) / len(differences) ** 0.5)


def _pair(pair: Pair) -> list[str]:
    t = f"{pair.difference / pair.error:.2f}" if pair.error else ""
    return [pair.best, f"{_without_sign(pair.difference)} ± {pair.error:.3f}", t]


def _score(score: float) -> str:
    return f"{score:.2f}"


def _loss(one: Mapping[str, Any] | None, splits: int) -> str:
    """Return a loss; says of how many splits, where that is not all."""
    if one is None:
        return ""
    losses = one["losses"]
    weights = one.get("weights")
    share = "" if weights is None else f"; {weights:.2f}"
    fewer = f" ({len(losses)} splits)" if len(losses) < splits else ""
    spread = f" ± {stdev(losses):.3f}" if len(losses) > 1 else ""
    return f"{_without_sign(mean(losses))}{spread}{share}{fewer}"


def _without_sign(number: float) -> str:
    """Return a number with three digits; a zero has no sign."""
    return f"{round(number, 3) + 0:.3f}"


def _price(one: Mapping[str, Any] | None) -> str:
    if one is None:
        return ""
    price = one["price"]
    instructions = f"{price['instructions']:,}; " if price["instructions"] else ""
    return f"{instructions}{price['flash']:,}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
