"""Searches for the widths of layers under limits, and prints sensitivity and frontier."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from microtir.cli.output import write, write_error, write_table
from microtir.cli.progress import Progress
from microtir.config import CompilationConfig
from microtir.errors import UsageError
from microtir.support.files import replace_file

if TYPE_CHECKING:
    from microtir.graph.ir import Graph
    from microtir.host.float_samples import FloatSamples
    from microtir.quantise import Point, QuantiseOptions, WidthSearch

_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,6})?) ?%")
_BITS = {"int8": "8", "weights4": "4", "16x8": "16"}
_LEGEND = "8 is int8, 4 weights of 4 bits, 16 activations of 16 bits"
_MOST_POINTS = 16  # rows of a frontier that fits a screen

MaxLoss = Annotated[
    str | None,
    typer.Option(
        "--max-loss",
        metavar="P%",
        help="Chooses the width of each layer, for the best program within the budgets. The "
        "accuracy falls by at most P. Without --labels, P limits the error power of the outputs.",
    ),
]


@dataclass(frozen=True, slots=True)
class Within:
    """The limits of a search.

    Args:
        config: with budgets and goal.
        max_loss: as a share.
        show: called with what was tried, before the best of it may be refused.
    """

    config: CompilationConfig
    max_loss: float
    show: Callable[[WidthSearch], None]

    def searched(
        self, graph: Graph, samples: FloatSamples, options: QuantiseOptions, progress: Progress
    ) -> WidthSearch:
        """Search over the widths of a float graph's layers.

        Raises:
            UsageError: samples do not fit, or no width is free.
        """
        from microtir.quantise import search_widths
        from microtir.search.planned_price import planned_price, width_limits

        limits = width_limits(self.config, self.max_loss)
        search = search_widths(
            graph, samples.inputs, limits, planned_price(self.config), options,
            samples.labels, tell=lambda text: progress.show(f"quantising: {text}"),
        )  # fmt: skip
        self.show(search)
        return search


def within_of(
    config: CompilationConfig, max_loss: float | None, show: Callable[[WidthSearch], None]
) -> Within | None:
    """Return the limits of a search; None where no loss is named, and none is asked for."""
    return None if max_loss is None else Within(config, max_loss, show)


def share_of(max_loss: str) -> float:
    """Return a percentage as a share.

    Raises:
        UsageError: it is none.
    """
    match = _SHARE.fullmatch(max_loss)
    if match is None:
        raise UsageError(f"cannot read {max_loss!r}", where="--max-loss", legal="1% or 0.5%")
    return float(match[1]) / 100


def note_of_search(search: WidthSearch) -> None:
    """Write to stderr which widths were chosen."""
    point, samples = search.best, len(search.reference.runs)
    write_error(
        f"note: the best of {len(search.points)} combinations of widths is {_widths(point)}"
        f" ({_LEGEND}): loss {_percent(point.loss)} on {samples} samples ({search.reference.kind})"
    )


def print_search(search: WidthSearch) -> None:
    """Print what each layer costs at each width, and the frontier of all that was tried."""
    from microtir.quantise import Width

    kind, samples = search.reference.kind, len(search.reference.runs)
    write(f"loss by layer ({kind}), and SQNR of the outputs, with the other layers at int8")
    tried = [w for w in Width if any(w in row.points for row in search.sensitivity)]
    rows = [
        (
            row.layer.node.name,
            row.layer.node.source.operator,
            row.layer.weights,
            *(_loss_cell(row.points[w]) if w in row.points else "" for w in tried),
        )
        for row in search.sensitivity
    ]
    heads = [width.value for width in tried]
    write_table(("layer", "operator", "weights", *heads), rows, right=("weights", *heads))
    how = "all" if search.is_exhaustive else "by sensitivity, then layer by layer"
    points = shown_points(search)
    write(
        f"\nfrontier of {len(search.points)} combinations ({how}), {samples} samples: programs "
        "that no other program beats in flash, work and loss"
    )
    columns = ("loss", "SQNR dB", "weights", "flash", "RAM", "work")
    write_table(
        (*columns, "", "widths"),
        [
            (
                _percent(point.loss), f"{_decibels(point):.1f}", point.weights, point.price.flash,
                point.price.ram, point.price.work,
                _mark(search, point), _widths(point),
            )
            for point in points
        ],
        right=columns,
    )  # fmt: skip
    rest = len(set(search.frontier) - set(points))
    if rest:
        write(f"{rest} other programs are on the frontier; --json FILE lists all")
    write("flash, RAM and work (instructions or cycles) are estimates")
    write(f"widths are those of the layers in the order above; {_LEGEND}")
    if kind == "accuracy" and search.limits.max_loss < 1 / samples:
        write(f"one of {samples} samples is {1 / samples:.1%}: the limit allows no loss")
    write("")


def draw_search(search: WidthSearch, title: str, path: Path) -> None:
    """Draw the frontier of a search as SVG.

    Raises:
        OutputError: the file cannot be written.
    """
    from microtir.search.picture import to_svg
    from microtir.search.width_chart import picture_of_widths

    replace_file(path, to_svg(picture_of_widths(search, title)).encode())


def facts_of_search(search: WidthSearch) -> dict[str, Any]:
    """Return a search as it is written as JSON."""
    on_frontier = set(search.frontier)
    return {
        "max_loss": search.limits.max_loss,
        "samples": len(search.reference.runs),
        "loss": search.reference.kind,
        "is_exhaustive": search.is_exhaustive,
        "layers": [
            {"name": layer.node.name, "weights": layer.weights} for layer in search.layers
        ],
        "trials": [
            {
                "widths": [width.value for width in point.widths],
                "loss": point.loss if math.isfinite(point.loss) else None,
                "sqnr_db": _decibels(point),
                "weights_bytes": point.weights,
                "flash": point.price.flash,
                "ram": point.price.ram,
                "work": point.price.work,
                "on_frontier": point in on_frontier,
                "is_chosen": point is search.best,
            }
            for point in search.points
        ],
    }  # fmt: skip


def shown_points(search: WidthSearch) -> list[Point]:
    """Return as many points of the frontier as fit a screen, and the best point."""
    points = list(search.frontier)
    step = -(-len(points) // _MOST_POINTS)
    shown = {*points[::step], search.best}
    return sorted(shown, key=lambda point: (point.price.flash, point.price.work))


def _mark(search: WidthSearch, point: Point) -> str:
    if point is search.best:
        return "chosen" if point.is_within(search.limits) else "nearest"
    return "" if point.is_within(search.limits) else "too much"


def _widths(point: Point) -> str:
    return " ".join(_BITS[width.value] for width in point.widths)


def _loss_cell(point: Point) -> str:
    return f"{_percent(point.loss)}, {_decibels(point):.1f} dB"


def _decibels(point: Point) -> float:
    return -10 * math.log10(max(point.error, 1e-20))


def _percent(share: float) -> str:
    return f"{share:.2%}"
