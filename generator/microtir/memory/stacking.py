"""Makes a placement smaller by a local search over the order in which buffers are stacked.

Buffers between which there are distances, one way or the other, are the jobs of a disjunctive graph
(Roy and Sussmann 1964), and the workspace is its makespan.  Stacked in an order, each buffer lies
as low as those before it allow.  Only the chain of buffers that reaches the top decides how high
the stack is, so that a step moves one of these: past its neighbour on the chain, as in "Job shop
scheduling by simulated annealing" (van Laarhoven, Aarts and Lenstra 1992), or to anywhere.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WORK = 1_000_000
"""Distances that are looked at, in all; a second has some ten times as many."""

_MOST_WORSE = 0.05  # of the steps that lead up, as many are taken at first, and in the end none
_MOVED_ANYWHERE = 0.6  # of the steps


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
        self._sizes = sizes
        self._alignments = alignments
        self._below = [[(b, above[b][a]) for b in others] for a, others in enumerate(above)]
        self._step = len(sizes) + sum(len(others) for others in above)

    def stacked(self, order: Sequence[int]) -> Stack:
        """Return every buffer as low as those before it in an order allow."""
        offsets, under = [-1] * len(order), [-1] * len(order)
        size, last = 0, -1
        for a in order:
            at, support = 0, -1
            for b, distance in self._below[a]:
                if offsets[b] >= 0 and offsets[b] + distance > at:
                    at, support = offsets[b] + distance, b
            need = self._alignments[a]
            at = -(-at // need) * need
            offsets[a], under[a] = at, support
            if at + self._sizes[a] > size:
                size, last = at + self._sizes[a], a
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
        steps = work // (self._step * len(starts) or 1)
        best = min((self.stacked(order) for order in starts), key=lambda stack: stack.size)
        for start in starts:
            order, now = list(start), self.stacked(start)
            for step in range(steps):
                if best.size <= bound:
                    return best
                tried = _moved(order, now.chain, rng)
                stack = self.stacked(tried)
                if stack.size <= now.size or rng.random() < _MOST_WORSE * (1 - step / steps):
                    order, now = tried, stack
                    best = min(best, now, key=lambda stack: stack.size)
        return best


def _moved(order: Sequence[int], chain: Sequence[int], rng: random.Random) -> list[int]:
    """Return an order with a buffer of the chain at another place."""

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
