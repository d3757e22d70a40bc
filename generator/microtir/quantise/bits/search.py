"""Search over the widths of layers for the best program that keeps to limits.

Networks of few layers are searched exhaustively. Of others layers are made wider by what that
gains until the loss is kept, and narrower by what that costs while it is; the best of all trials is
changed layer by layer then. Whatever is compared was run: losses of layers are never added up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from microtir.errors import LossError, UsageError
from microtir.graph.ir import Array, Graph
from microtir.quantise.bits.frontier import Limits, Point, frontier
from microtir.quantise.bits.layers import TRIED, Layer, layers_of
from microtir.quantise.bits.sensitivity import Sensitivity, sensitivities, with_width
from microtir.quantise.bits.trials import PriceOf, Tell, Trials, said
from microtir.quantise.calibrated import Calibrated
from microtir.quantise.cost import Reference
from microtir.quantise.options import QuantiseOptions, Width
from microtir.quantise.result import Quantised
from microtir.support.arguments import checked_arguments

_MOST_EXHAUSTIVE = 6  # layers
_MOST_ROUNDS = 2  # over all layers, in which the best widths are changed one by one


@dataclass(frozen=True, slots=True, eq=False)
class WidthSearch:
    """The outcome of a search.

    Args:
        layers: whose widths were chosen.
        sensitivity: of each of them.
        points: all that was tried.
        best: of these: within the limits, or else the nearest to them.
        limits: that were asked for.
        reference: samples that measured, and what a loss is one of.
        is_exhaustive: whether all widths were tried.
        nearest: the graph of integers of `best`.
    """

    layers: tuple[Layer, ...]
    sensitivity: tuple[Sensitivity, ...]
    points: tuple[Point, ...]
    best: Point
    limits: Limits
    reference: Reference
    is_exhaustive: bool
    nearest: Quantised

    @property
    def frontier(self) -> tuple[Point, ...]:
        """Return the points that no other one beats in flash, work and loss."""
        return frontier(self.points)

    def quantised(self) -> Quantised:
        """Return the graph of integers of the best widths.

        Raises:
            LossError: none keep to the limits; says how near the best ones come.
        """
        if not self.best.is_within(self.limits):
            raise LossError(
                "no combination of widths is within the limits", where="quantise",
                legal=_limits_text(self.limits), fix="; ".join(self._nearest_ones()),
            )  # fmt: skip
        return self.nearest

    def _nearest_ones(self) -> Sequence[str]:
        """Return what the best widths come to that keep one kind of limit."""
        limits, lines = self.limits, []
        fitting = [point for point in self.points if point.excess(limits) == 0]
        if fitting and (limits.flash or limits.ram):
            least = min(fitting, key=lambda point: (point.loss, point.rank(limits)))
            lines.append(f"the least loss within the budgets is {_text(least)}")
        keeping = [point for point in self.points if point.keeps_loss(limits)]
        if keeping:
            least = min(keeping, key=lambda point: (point.excess(limits), point.rank(limits)))
            lines.append(f"the nearest program within the loss is {_text(least)}")
        if not lines:
            least = min(self.points, key=lambda point: (point.loss, point.rank(limits)))
            lines.append(f"the least loss is {_text(least)}")
        return lines


@checked_arguments
def search_widths(
    graph: Graph,
    samples: Mapping[str, Array],
    limits: Limits,
    price_of: PriceOf,
    options: QuantiseOptions | None = None,
    labels: Array | None = None,
    widths: Sequence[Width] = TRIED,
    tell: Tell = lambda _text: None,
) -> WidthSearch:
    """Search for the widths of layers with which a quantised graph is best within limits.

    Each layer with weights has int8, 4-bit weights, or activations of 16 bits, where its operator
    has them; operators without weights follow the layer before them. Of at most six layers all
    combinations are tried.

    Args:
        graph: of floats, as a reader gave it.
        samples: for each argument of the graph an array whose first axis counts samples.
        limits: on loss, flash and RAM.
        price_of: gives the price of a program, as `microtir.search.planned_price` does.
        options: by default those of `quantise`; layers that its patterns name keep their widths,
            and `rounding_work` is that of each trial.
        labels: for each sample its class, or the numbers that the first output should be.
        widths: that layers may have beside int8.
        tell: called with what is done next.

    Raises:
        UsageError: samples or labels do not fit, or there is no layer to choose for.
    """
    options = options or QuantiseOptions()
    _check_start(options.width)
    tell("calibrating")
    calibrated = Calibrated.of(graph, samples, options)
    layers = layers_of(calibrated.floats, options, widths)
    if not layers:
        raise UsageError(
            "the model has no layer with weights whose width the search can choose",
            where=graph.name,
            legal="convolutions, dense or recurrent layers that no pattern of --layer names",
        )
    reference = Reference.of(calibrated.floats, samples, options.holdout, labels)
    trials = Trials(calibrated, reference, layers, options, limits, price_of, tell)
    table = tuple(sensitivities(trials))
    is_exhaustive = len(layers) <= _MOST_EXHAUSTIVE
    if is_exhaustive:
        for combination in product(*(layer.widths for layer in layers)):
            trials.point(combination)
    else:
        _by_sensitivity(trials, table)
        _changed_one_by_one(trials)
    best, integers = trials.best
    return WidthSearch(
        layers, table, tuple(trials.points.values()), best, limits, reference,
        is_exhaustive, calibrated.quantised(integers),
    )  # fmt: skip


def _check_start(width: Width) -> None:
    if width is not Width.INT8:
        raise UsageError(
            f"a search for widths cannot begin with {width.value} for all layers",
            where="search_widths",
            legal="int8, because the search begins with int8 for all layers",
            fix="leave out this width, or set the width of single layers by name",
        )


def _by_sensitivity(trials: Trials, table: Sequence[Sensitivity]) -> None:
    """Widen what gains most until the loss is kept, then narrow what costs least while it is."""
    for width in (Width.WEIGHTS4, Width.INT16):  # the ends of the frontier
        trials.point(tuple(width if width in layer.widths else layer.widths[0]
                           for layer in trials.layers))  # fmt: skip
    point = trials.point(trials.base)
    for number in _order(table, Width.INT16):
        if point.keeps_loss(trials.limits):
            break
        wider = trials.point(with_width(point.widths, number, Width.INT16))
        point = min(point, wider, key=_loss)
    for number in _order(table, Width.WEIGHTS4):
        narrower = trials.point(with_width(point.widths, number, Width.WEIGHTS4))
        if narrower.keeps_loss(trials.limits):
            point = narrower


def _changed_one_by_one(trials: Trials) -> None:
    """Change the width of one layer after the other, as long as the best point becomes better."""
    for _ in range(_MOST_ROUNDS):
        before, _integers = trials.best
        for number, layer in enumerate(trials.layers):
            for width in layer.widths:
                best, _integers = trials.best
                trials.point(with_width(best.widths, number, width))
        if trials.best[0] is before:
            break


def _order(table: Sequence[Sensitivity], width: Width) -> list[int]:
    """Return the numbers of the layers that have a width, those that lose least with it first."""
    known = [number for number, one in enumerate(table) if width in one.points]
    return sorted(known, key=lambda number: _loss(table[number].points[width]))


def _loss(point: Point) -> tuple[float, float]:
    return point.loss, point.error


def _limits_text(limits: Limits) -> str:
    parts = [f"a loss of {limits.max_loss:.3%}"]
    named = (("flash", limits.flash), ("RAM", limits.ram))
    parts += [f"{size:,} bytes of {name}" for name, size in named if size is not None]
    return ", ".join(parts)


def _text(point: Point) -> str:
    price = point.price
    return (
        f"{point.loss:.3%} with {price.flash:,} bytes of flash and {price.ram:,} of RAM"
        f" ({said(point.widths)})"
    )
