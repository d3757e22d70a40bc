"""Hold what widths of layers come to, and the frontier of size, work and loss."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from microtir.quantise.options import Width
from microtir.support.dominance import beats

Widths: TypeAlias = "tuple[Width, ...]"
"""The width of each layer, in the order of the layers."""

_ROUNDED = 1e-9  # by which a difference of two shares may miss a limit that it equals


class Goal(Enum):
    """The figure of a program that is least, of all within limits."""

    WORK = "work"
    FLASH = "flash"
    RAM = "ram"


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a program: instructions or cycles of a run, and bytes of flash and of RAM."""

    work: int
    flash: int
    ram: int

    def of(self, goal: Goal) -> int:
        """Return what a goal keeps small."""
        return {Goal.WORK: self.work, Goal.FLASH: self.flash, Goal.RAM: self.ram}[goal]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that a program keeps to.

    Args:
        max_loss: the largest loss, as a share: 0.01 is one percent; see `Cost.loss`.
        flash: bytes of code and constants.
        ram: bytes that a budget of RAM counts.
        goal: what is least, of all that keep to the limits.
    """

    max_loss: float
    flash: int | None = None
    ram: int | None = None
    goal: Goal = Goal.WORK


@dataclass(frozen=True, slots=True)
class Point:
    """Widths of layers, and what they come to.

    Args:
        widths: of each layer.
        weights: bytes of the weights of these layers, without biases.
        price: of the program.
        loss: by running the integers, as a share.
        error: power of the outputs' difference as a share of their power.
    """

    widths: Widths
    weights: int
    price: Price
    loss: float
    error: float

    def beats(self, other: Point) -> bool:
        """Return whether it is nowhere worse in flash, work and loss, and better in one."""
        return beats(self.figures, other.figures)

    def keeps_loss(self, limits: Limits) -> bool:
        """Return whether no more is lost than the limits allow."""
        return self.loss <= limits.max_loss + _ROUNDED

    def excess(self, limits: Limits) -> float:
        """Return by how much it exceeds budgets, as a sum of shares of them."""
        pairs = ((self.price.flash, limits.flash), (self.price.ram, limits.ram))
        return sum(max(0.0, taken / limit - 1) for taken, limit in pairs if limit is not None)

    def rank(self, limits: Limits) -> tuple[float, ...]:
        """Return numbers by which points are compared, the best first.

        What keeps to the limits comes before what does not, then the goal counts, then the rest.
        """
        too_much = 0.0 if self.keeps_loss(limits) else self.loss - limits.max_loss
        price = self.price
        figures = (price.of(limits.goal), price.work, price.flash, price.ram)
        return (self.excess(limits) + too_much, *figures, self.loss, self.error, self.weights)

    def is_within(self, limits: Limits) -> bool:
        """Return whether it keeps to all limits."""
        return self.keeps_loss(limits) and self.excess(limits) == 0

    @property
    def figures(self) -> tuple[float, ...]:
        """Return what the frontier is of: flash, work and loss."""
        return (self.price.flash, self.price.work, self.loss)


def frontier(points: Iterable[Point]) -> tuple[Point, ...]:
    """Return the points that no other one beats, the least flash first; one of those that equal."""
    known = sorted(points, key=lambda point: (point.figures, point.weights, point.error))
    best: dict[tuple[float, ...], Point] = {}
    for point in known:
        if not any(other.beats(point) for other in best.values()):
            best.setdefault(point.figures, point)
    return tuple(best.values())
