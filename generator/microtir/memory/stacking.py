"""Makes a placement smaller by a local search over the order in which buffers are stacked.

Buffers between which there are distances, one way or the other, are the jobs of a disjunctive graph
(Roy and Sussmann 1964), and the workspace is its makespan.  Stacked in an order, each buffer lies
as low as those before it allow.  Only the chain of buffers that reaches the top decides how high
the stack is, so that a step moves one of these: past its neighbour on the chain, as in "Job shop
scheduling by simulated annealing" (van Laarhoven, Aarts and Lenstra 1992), or to anywhere.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WORK = 1_000_000
"""Limit of the distances that are compared in all; a second has time for some ten times as many."""

_MOST_WORSE = 0.05  # of the steps that lead up, as many are taken at first, and in the end none
_MOVED_ANYWHERE = 0.6  # of the steps
# One part of the work at most, and no more buffers, are for a proof that none is lower.
_PROVING, _PROVEN = 4, 24


@dataclass(frozen=True, slots=True)
class Stack:
    """Offsets of buffers by number, their bytes together, and the chain that reaches the top."""

    offsets: Sequence[int]
    size: int
    chain: Sequence[int]


class Stacking:
    """Buffers by number that are stacked in any order.

    Args:
        sizes: in bytes.
        alignments: of each.
        above: `above[a][b]` is how far b starts behind a if it lies above a; absent if they never
            meet.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        alignments: Sequence[int],
        above: Sequence[Mapping[int, int]],
    ) -> None:
        self.sizes = sizes
        self.alignments = alignments
        self.below = [[(b, above[b][a]) for b in others] for a, others in enumerate(above)]
        self.step = len(sizes) + sum(len(others) for others in above)

    def stacked(self, order: Sequence[int], most: float = math.inf) -> Stack:
        """Return every buffer as low as those before it in an order allow.

        A stack that comes to more than `most` bytes is not finished.
        """
        sizes, alignments, below = self.sizes, self.alignments, self.below
        offsets, under = [-1] * len(order), [-1] * len(order)
        size, last = 0, -1
        for a in order:
            at, support = 0, -1
            for b, distance in below[a]:
                if offsets[b] >= 0 and offsets[b] + distance > at:
                    at, support = offsets[b] + distance, b
            need = alignments[a]
            at = -(-at // need) * need
            offsets[a], under[a] = at, support
            if at + sizes[a] > size:
                size, last = at + sizes[a], a
                if size > most:
                    break
        chain = []
        while last >= 0:
            chain.append(last)
            last = under[last]
        return Stack(offsets, size, chain[::-1])

    def shortened(self, starts: Sequence[Sequence[int]], bound: int, work: int = WORK) -> Stack:
        """Return the lowest stack that a search of so much work finds; deterministic.

        Args:
            starts: orders to begin with, the best first; at least one.
            bound: a size that no placement goes below.
            work: distances that may be looked at.
        """
        rng = random.Random(0)
        steps = work // (self.step * len(starts) or 1)
        best = min((self.stacked(order) for order in starts), key=lambda stack: stack.size)
        # Of few buffers all orders are looked at: it ends where no other one is lower.
        orders = Orders(self, best.size, bound, work // _PROVING)
        bound = max(bound, orders.lowest or bound)
        for start in starts:
            order, now = list(start), self.stacked(start)
            for step in range(steps):
                if best.size <= bound:
                    return best
                tried = _moved(order, now.chain, rng)
                stack = self.stacked(tried, now.size)
                if stack.size > now.size:
                    if rng.random() >= _MOST_WORSE * (1 - step / steps):
                        continue
                    stack = self.stacked(tried)
                order, now = tried, stack
                best = min(best, now, key=lambda stack: stack.size)
        # The search may miss what was seen among all orders, or among those that the work was for.
        seen = self.stacked(orders.best) if orders.best else best
        return min(best, seen, key=lambda stack: stack.size)


class Orders:
    """All orders in which buffers are stacked, as far as some may be lower than a known size.

    Offsets only grow while more is stacked, so that orders are left alone as soon as a buffer that
    is missing would reach the known size; partial stacks that are equal go on equally.

    Args:
        stacking: the buffers.
        size: the known size.
        bound: a size at which it may end.
        work: distances that may be looked at.

    Attributes:
        best: the order of the lowest stack that was found; empty where none was lower than `size`.
    """

    def __init__(self, stacking: Stacking, size: int, bound: int, work: int) -> None:
        self._sizes, self._alignments = stacking.sizes, stacking.alignments
        self._below, self._step = stacking.below, stacking.step
        self._size, self._bound, self._work = size, bound, work
        self._seen: set[tuple[int, ...]] = set()
        self._offsets = [-1] * len(self._sizes)
        self._order: list[int] = []
        self.best: tuple[int, ...] = ()
        if len(self._sizes) > _PROVEN:
            self._work = -1
        else:
            self._extend(0)

    @property
    def lowest(self) -> int | None:
        """Return the size of the lowest stack, the known one if none is lower; None: too much."""
        return None if self._work < 0 else self._size

    def _extend(self, top: int) -> None:
        """Stack every buffer that is missing upon those that are there, one after the other."""
        self._work -= self._step
        extended = []
        for a, offset in enumerate(self._offsets):
            if offset < 0:
                at = self._lowest(a)
                end = at + self._sizes[a]
                if end >= self._size:
                    return
                extended.append((at, end, a))
        if not extended:
            self._size, self.best = top, tuple(self._order)
        for at, end, a in sorted(extended):
            if self._work < 0 or self._size <= self._bound:
                return
            self._offsets[a] = at
            self._order.append(a)
            key = tuple(self._offsets)
            if key not in self._seen:
                self._seen.add(key)
                self._extend(max(top, end))
            self._offsets[a] = -1
            self._order.pop()

    def _lowest(self, a: int) -> int:
        """Return the offset of a buffer upon those that are there."""
        offsets, at = self._offsets, 0
        for b, distance in self._below[a]:
            if offsets[b] >= 0 and offsets[b] + distance > at:
                at = offsets[b] + distance
        need = self._alignments[a]
        return -(-at // need) * need


def _moved(order: Sequence[int], chain: Sequence[int], rng: random.Random) -> list[int]:
    def below(count: int) -> int:
        return int(rng.random() * count)

    moved = list(order)
    if len(chain) < 2 or rng.random() < _MOVED_ANYWHERE:
        number = chain[below(len(chain))]
        moved.remove(number)
        moved.insert(below(len(order)), number)
        return moved
    at = below(len(chain) - 1)
    lower, upper = chain[at], chain[at + 1]
    if rng.random() < 0.5:
        moved.remove(lower)
        moved.insert(moved.index(upper) + 1, lower)
    else:
        moved.remove(upper)
        moved.insert(moved.index(lower), upper)
    return moved
