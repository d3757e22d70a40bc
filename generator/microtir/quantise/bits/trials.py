"""Try widths of layers: each graph of integers is made, run on samples and priced once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from microtir.graph.ir import Graph
from microtir.quantise.bits.frontier import Limits, Point, Price, Widths
from microtir.quantise.bits.layers import Layer
from microtir.quantise.calibrated import Calibrated, Integers
from microtir.quantise.cost import Reference
from microtir.quantise.options import QuantiseOptions, Width

PriceOf: TypeAlias = Callable[[Graph], Price]
"""Function that gives the price of the program of a graph of integers."""

Tell: TypeAlias = Callable[[str], None]
"""Function that is called with what is done next."""


@dataclass(slots=True, eq=False)
class Trials:
    """Points that were tried.

    Args:
        calibrated: the float graph with its samples.
        reference: samples that measure, and what floats answer.
        layers: whose widths are chosen.
        options: of all that is the same in every trial.
        limits: by which points are compared.
        price_of: gives the price of a program.
        tell: called before each trial.
    """

    calibrated: Calibrated
    reference: Reference
    layers: tuple[Layer, ...]
    options: QuantiseOptions
    limits: Limits
    price_of: PriceOf
    tell: Tell
    points: dict[Widths, Point] = field(default_factory=dict)
    _best: tuple[Point, Integers] | None = None

    def point(self, widths: Widths) -> Point:
        """Return what widths come to; they are tried where they were not."""
        if widths not in self.points:
            self.tell(f"trial {len(self.points) + 1}: {said(widths)}")
            integers = self.calibrated.integers(self._options_of(widths))
            cost = self.reference.cost(integers.graph)
            weights = sum(
                layer.bytes(width) for layer, width in zip(self.layers, widths, strict=True)
            )
            price = self.price_of(integers.graph)
            point = Point(widths, weights, price, cost.loss, cost.error)
            self.points[widths] = point
            if self._best is None or self._rank(point) < self._rank(self._best[0]):
                self._best = point, integers
        return self.points[widths]

    @property
    def base(self) -> Widths:
        """Return int8 for all layers."""
        return tuple(layer.widths[0] for layer in self.layers)

    @property
    def best(self) -> tuple[Point, Integers]:
        """Return the best point so far, and its graph; the first trial is that of `base`."""
        self.point(self.base)
        assert self._best is not None
        return self._best

    def _rank(self, point: Point) -> tuple[float, ...]:
        return point.rank(self.limits)

    def _options_of(self, widths: Widths) -> QuantiseOptions:
        own = [
            one
            for layer, width in zip(self.layers, widths, strict=True)
            for one in layer.patterns(width)
        ]
        return replace(self.options, layers=(*self.options.layers, *own))


def said(widths: Widths) -> str:
    """Return how many layers have which width, in words."""
    counted: Mapping[Width, int] = {
        width: widths.count(width) for width in Width if width in widths
    }
    return ", ".join(f"{count} {width.value}" for width, count in counted.items())
