"""Measure how much each layer costs at each width, while the others are int8."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from microtir.quantise.bits.frontier import Point, Widths
from microtir.quantise.bits.layers import Layer
from microtir.quantise.bits.trials import Trials
from microtir.quantise.options import Width


@dataclass(frozen=True, slots=True, eq=False)
class Sensitivity:
    """The cost of a layer at each width that it may have, the others being int8.

    Args:
        layer: that it is about.
        points: of the whole network, by the width of the layer.
    """

    layer: Layer
    points: Mapping[Width, Point]


def sensitivities(trials: Trials) -> Iterator[Sensitivity]:
    """Yield the sensitivity of each layer, in the order of the layers."""
    base = trials.base
    for number, layer in enumerate(trials.layers):
        yield Sensitivity(
            layer,
            {width: trials.point(with_width(base, number, width)) for width in layer.widths},
        )


def with_width(widths: Widths, number: int, width: Width) -> Widths:
    """Return widths of which that of a layer, by its number, is another."""
    return (*widths[:number], width, *widths[number + 1 :])
