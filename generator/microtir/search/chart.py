"""A frontier as a picture: instructions over RAM, one mark for each trial."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import jinja2

from microtir import resources
from microtir.search.pareto import Cost, Frontier, Trial

_WIDTH, _HEIGHT = 720, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 24, 24, 56


@dataclass(frozen=True, slots=True)
class _Mark:
    """A trial: its place, and what is said about it."""

    x: str
    y: str
    text: str
    is_best: bool


@dataclass(frozen=True, slots=True)
class _Tick:
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
    up = _Axis.of([cost.instructions for cost in costs], _HEIGHT - _BOTTOM, _TOP)
    marks = [_mark(trial, across, up, is_best=frontier.is_best(trial)) for trial in frontier.trials]
    return _environment().get_template("search/frontier.svg.j2").render(
        title=title,
        width=_WIDTH,
        height=_HEIGHT,
        left=_LEFT,
        right=_WIDTH - _RIGHT,
        top=_TOP,
        bottom=_HEIGHT - _BOTTOM,
        marks=marks,
        path=" ".join(f"{m.x},{m.y}" for m, on in zip(marks, _falling(costs), strict=True) if on),
        across=across.ticks(),
        up=up.ticks(),
    )  # fmt: skip


def _falling(costs: Sequence[Cost]) -> list[bool]:
    """Whether each cost is on the line: nothing with as little RAM is as fast, flash aside."""
    flat = [Cost(cost.ram, cost.instructions, 0) for cost in costs]
    return [not any(other.beats(cost) for other in flat) for cost in flat]


def _mark(trial: Trial, across: _Axis, up: _Axis, *, is_best: bool) -> _Mark:
    cost = trial.cost
    text = (
        f"{trial.flags}: {cost.ram:,} bytes of RAM, {cost.instructions:,} instructions, "
        f"{cost.flash:,} bytes of flash"
    )
    return _Mark(f"{across.at(cost.ram):.1f}", f"{up.at(cost.instructions):.1f}", text, is_best)


def _short(value: float) -> str:
    for unit, size in (("M", 10**6), ("k", 10**3)):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g}"


@lru_cache
def _environment() -> jinja2.Environment:
    loader = jinja2.FileSystemLoader(resources.templates())
    return jinja2.Environment(
        loader=loader, undefined=jinja2.StrictUndefined, autoescape=True,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
