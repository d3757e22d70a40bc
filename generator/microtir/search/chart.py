"""Draws a frontier: instructions, or cycles, over RAM, one mark for each trial."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from microtir.config import Measure
from microtir.search.pareto import Frontier, ProgramCost, Trial
from microtir.support.templates import render_page

_WIDTH, _HEIGHT = 720, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 24, 48, 56
_RADIUS = 5  # of a mark
_LETTER = 6.2  # width of one, about

_Point = tuple[float, float]
_Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """A trial: its place, and what is said about it."""

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


def to_svg(frontier: Frontier, title: str) -> str:
    """Return the picture; the same frontier gives the same bytes.

    Args:
        frontier: with at least one trial.
        title: what was measured, and where.
    """
    costs = [trial.cost for trial in frontier.trials]
    across = _Axis.of([cost.ram for cost in costs], _LEFT, _WIDTH - _RIGHT)
    measure = frontier.measure
    up = _Axis.of([cost.work(measure) for cost in costs], _HEIGHT - _BOTTOM, _TOP)
    marks = [_mark(frontier, trial, across, up) for trial in frontier.trials]
    falling = zip(frontier.trials, _falling(costs, measure), strict=True)
    corners = _steps([_place(frontier, trial, across, up) for trial, is_on in falling if is_on])
    return render_page(
        "search/frontier.svg.j2",
        title=title,
        width=_WIDTH,
        height=_HEIGHT,
        left=_LEFT,
        right=_WIDTH - _RIGHT,
        top=_TOP,
        bottom=_HEIGHT - _BOTTOM,
        marks=marks,
        labels=_labels(frontier, across, up),
        unit="estimated cycles" if measure is Measure.CYCLES else "instructions",
        path=" ".join(f"{x:.1f},{y:.1f}" for x, y in corners),
        across=across.ticks(),
        up=up.ticks(),
    )  # fmt: skip


def _falling(costs: Sequence[ProgramCost], measure: Measure) -> list[bool]:
    """Return whether each cost is on the line: none with as little RAM is as fast."""
    flat = [replace(cost, flash=0) for cost in costs]
    return [not any(other.beats(cost, measure) for other in flat) for cost in flat]


def _steps(points: Sequence[_Point]) -> list[_Point]:
    """Return the line through points from right to left, up where more RAM is faster."""
    line = list(points[:1])
    for (right, _), (x, y) in pairwise(points):
        line += [(right, y), (x, y)]
    return line


def _place(frontier: Frontier, trial: Trial, across: _Axis, up: _Axis) -> _Point:
    return across.at(trial.cost.ram), up.at(trial.cost.work(frontier.measure))


def _labels(frontier: Frontier, across: _Axis, up: _Axis) -> list[_Label]:
    """Return names beside the marks of the trials; one that has no room there has none."""
    places = [_place(frontier, trial, across, up) for trial in frontier.trials]
    taken = [(x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS) for x, y in places]
    labels = []
    # The goals are named first: budgets lie close together, and their marks say more on hover.
    order = sorted(range(len(places)), key=lambda n: (len(_name(frontier.trials[n])), n))
    for number in order:
        (x, y), text = places[number], _name(frontier.trials[number])
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


def _name(trial: Trial) -> str:
    """Return the goal, or the budget or the percentage that is tried with it."""
    ram, recompute = trial.config.budget.ram, trial.config.pass_config.recompute
    if ram is not None:
        return f"budget {ram:,}"
    goal = trial.config.optimize.value
    return f"{goal}, recompute {recompute}" if recompute else goal


def _overlap(a: _Box, b: _Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _mark(frontier: Frontier, trial: Trial, across: _Axis, up: _Axis) -> _Mark:
    cost, is_best = trial.cost, frontier.is_best(trial)
    text = (
        f"{trial.flags}: {cost.ram:,} bytes of RAM, {cost.instructions:,} instructions, "
        f"{cost.cycles:,} cycles, {cost.flash:,} bytes of flash"
    )
    x, y = _place(frontier, trial, across, up)
    return _Mark(f"{x:.1f}", f"{y:.1f}", text, is_best)


def _short(value: float) -> str:
    for unit, size in (("M", 10**6), ("k", 10**3)):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g}"
