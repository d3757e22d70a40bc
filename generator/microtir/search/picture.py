"""Draws choices by two of their figures, one mark for each, and the line of the best of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from microtir.support.dominance import beats
from microtir.support.templates import render_page

_WIDTH, _HEIGHT = 720, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 24, 48, 56
_RADIUS = 5  # of a mark
_LETTER = 6.2  # width of one, about

_Point = tuple[float, float]
_Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A choice in a picture.

    Args:
        across: its figure on the axis to the right.
        up: its figure on the axis upwards.
        name: that stands beside its mark, where there is room.
        text: all that is said about it.
        is_best: whether no other one beats it in all of its figures.
        is_legal: whether the line may go through it.
    """

    across: int
    up: int
    name: str
    text: str
    is_best: bool
    is_legal: bool = True


@dataclass(frozen=True, slots=True)
class Picture:
    """Choices, of which there is at least one, and the words around them.

    Args:
        title: what was measured, and where.
        spots: in an order in which `across` never grows.
        across: the figure on the axis to the right.
        up: the figure on the axis upwards.
        legend: what a filled mark and the line are.
    """

    title: str
    spots: Sequence[Spot]
    across: str
    up: str
    legend: str


@dataclass(frozen=True, slots=True)
class _Mark:
    """A spot: its place, and what is said about it."""

    x: str
    y: str
    text: str
    is_best: bool


@dataclass(frozen=True, slots=True)
class _Label:
    """The name of a mark; `x` and `y` are where the text starts or ends."""

    x: str
    y: str
    anchor: str
    text: str


@dataclass(frozen=True, slots=True)
class _Tick:
    """A round value on an axis: its place and its text."""

    at: str
    text: str


@dataclass(frozen=True, slots=True)
class _Axis:
    """Values from `low` to `high` on a logarithmic scale between two places."""

    low: float
    high: float
    start: float
    stop: float

    @staticmethod
    def of(values: Sequence[int], start: float, stop: float) -> _Axis:
        low, high = max(min(values), 1), max(*values, 2)
        margin = max((high / low) ** 0.06, 1.02)
        return _Axis(low / margin, high * margin, start, stop)

    def at(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.stop - self.start)

    def ticks(self) -> list[_Tick]:
        """Round values in reach: 1, 2 and 5 times powers of ten, or even steps over a short way."""
        lowest = math.floor(math.log10(self.low))
        values = [lead * 10.0**power for power in range(lowest, lowest + 12) for lead in (1, 2, 5)]
        if self.high / self.low < 8:
            step = 10.0 ** math.floor(math.log10((self.high - self.low) / 3))
            step *= max(n for n in (1, 2, 5) if n * step <= (self.high - self.low) / 3)
            first = math.ceil(self.low / step)
            values = [n * step for n in range(first, first + 8)]
        inside = [value for value in values if self.low <= value <= self.high]
        return [_Tick(f"{self.at(value):.1f}", _short(value)) for value in inside]


def to_svg(picture: Picture) -> str:
    """Return the picture; the same one gives the same bytes."""
    spots = picture.spots
    across = _Axis.of([spot.across for spot in spots], _LEFT, _WIDTH - _RIGHT)
    up = _Axis.of([spot.up for spot in spots], _HEIGHT - _BOTTOM, _TOP)
    places = [(across.at(spot.across), up.at(spot.up)) for spot in spots]
    marks = [
        _Mark(f"{x:.1f}", f"{y:.1f}", spot.text, spot.is_best)
        for spot, (x, y) in zip(spots, places, strict=True)
    ]
    falling = zip(places, _falling(spots), strict=True)
    corners = _steps([place for place, is_on in falling if is_on])
    return render_page(
        "search/frontier.svg.j2",
        picture=picture,
        width=_WIDTH,
        height=_HEIGHT,
        left=_LEFT,
        right=_WIDTH - _RIGHT,
        top=_TOP,
        bottom=_HEIGHT - _BOTTOM,
        marks=marks,
        labels=_labels([spot.name for spot in spots], places),
        path=" ".join(f"{x:.1f},{y:.1f}" for x, y in corners),
        ticks_across=across.ticks(),
        ticks_up=up.ticks(),
    )  # fmt: skip


def _falling(spots: Sequence[Spot]) -> list[bool]:
    """Return whether each spot is on the line: no other legal one beats it in both figures."""
    legal = [(spot.across, spot.up) for spot in spots if spot.is_legal]
    return [
        spot.is_legal and not any(beats(other, (spot.across, spot.up)) for other in legal)
        for spot in spots
    ]


def _steps(points: Sequence[_Point]) -> list[_Point]:
    """Return the line through points from right to left, level until the next one, then up."""
    line = list(points[:1])
    for (right, _), (x, y) in pairwise(points):
        line += [(right, y), (x, y)]
    return line


def _labels(names: Sequence[str], places: Sequence[_Point]) -> list[_Label]:
    """Return names beside marks; one that has no room there has none."""
    taken = [(x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS) for x, y in places]
    labels = []
    # Short names first: the long ones are of marks that lie close together and say more on hover.
    for number in sorted(range(len(places)), key=lambda n: (len(names[n]), n)):
        (x, y), text = places[number], names[number]
        width = _LETTER * (len(text) + 1)
        for right, below in ((True, False), (False, False), (True, True), (False, True)):
            start = x + _RADIUS if right else x - _RADIUS - width
            base = y + (2.6 if below else -1) * _RADIUS
            box = (start, base - 2 * _RADIUS, start + width, base)
            inside = (
                box[0] > _LEFT and box[2] < _WIDTH - _RADIUS and _TOP < box[1] < _HEIGHT - _BOTTOM
            )
            if inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                at = x + _RADIUS if right else x - _RADIUS
                anchor = "start" if right else "end"
                labels.append(_Label(f"{at:.1f}", f"{base:.1f}", anchor, text))
                break
    return labels


def _overlap(a: _Box, b: _Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _short(value: float) -> str:
    for unit, size in (("M", 10**6), ("k", 10**3)):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g}"
