"""Offsets for buffers with lifetimes: best fit in several orders, shortened, or all orders.

Two buffers that keep bytes at the same moment need a distance, one way or the other: the one
above starts at least so far behind the start of the one below (`Lifetime.distance`).  Apart from
each other is the special case in which both keep all of their bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from microtir.memory.lifetimes import Lifetime, lower_bound
from microtir.memory.stacking import WORK, Stacking
from microtir.tir.ir import Buffer

# A fit depends on the order alone.  Large-first is the usual winner; the others repair the cases
# in which a long-lived small buffer ends up between two large ones.
_ORDERS: tuple[Callable[[Lifetime], tuple[int, ...]], ...] = (
    lambda life: (-life.size, life.begin),
    lambda life: (-(life.end - life.begin), -life.size, life.begin),
    lambda life: (-life.size * (life.end - life.begin), life.begin),
    lambda life: (life.begin, -life.size),
    lambda life: (-life.end, -life.size),
)


SEARCH_NODES = 10_000
GUARD = 64  # bytes: more than a micro-kernel reads ahead
_GUARD_ALIGNMENT = 8


def first_fit(lives: Sequence[Lifetime], alignment: int, work: int = WORK) -> Mapping[Buffer, int]:
    """Return an aligned offset in bytes for each buffer that keeps every distance.

    Every offset is a multiple of `alignment` and of what its buffer needs, both powers of two.
    Deterministic: ties keep program order. Stops early at the lower bound.  Where no order
    reaches it, the best are starts of a search (`stacking`), which takes `work`.
    """
    fitter = Fitter.of(lives, alignment)
    fits: list[Fit] = []
    for order in _ORDERS:
        fits.append(fitter.fit(sorted(range(len(lives)), key=lambda n: order(lives[n]))))
        if fits[-1][1] <= fitter.bound:
            break
    fits.sort(key=lambda fit: fit[1])
    best, size = fits[0]
    if size > fitter.bound:
        orders = [sorted(offsets, key=lambda n: (offsets[n], n)) for offsets, _ in fits]
        stacking = Stacking([life.size for life in lives], fitter.alignments, fitter.above)
        stack = stacking.shortened(orders, fitter.bound, work)
        if stack.size < size:
            best = dict(enumerate(stack.offsets))
    return {life.buffer: best[number] for number, life in enumerate(lives)}


def exact_fit(lives: Sequence[Lifetime], alignment: int, work: int = WORK) -> Mapping[Buffer, int]:
    """Return the smallest placement that a search over all orders finds.

    It begins with what `first_fit` finds by so much `work`, and ends at a lower bound or after
    SEARCH_NODES partial placements; then the gap of the plan says what may be left.
    """
    fitter = Fitter.of(lives, alignment)
    first = first_fit(lives, alignment, work)
    best = {number: first[life.buffer] for number, life in enumerate(lives)}
    best_size = workspace_size(lives, first)
    by_size = sorted(range(len(lives)), key=lambda n: _ORDERS[0](lives[n]), reverse=True)
    nodes = 0
    stack: list[_Partial] = [_EMPTY]
    while stack and best_size > fitter.bound and nodes < SEARCH_NODES:
        partial = stack.pop()
        if partial.size >= best_size:
            continue
        if len(partial.offsets) == len(lives):
            best, best_size = fitter.finished(partial)
            continue
        nodes += 1
        stack.extend(fitter.extended(partial, n) for n in by_size if n not in partial.offsets)
    return {life.buffer: best[number] for number, life in enumerate(lives)}


def guarded_fit(lives: Sequence[Lifetime], alignment: int) -> Mapping[Buffer, int]:
    """Return offsets at which no buffer shares a byte with another or touches it.

    A sanitizer that watches the gaps of GUARD bytes and more sees every access beside a buffer.
    It needs them to end at a multiple of 8.
    """
    offsets: dict[Buffer, int] = {}
    end = -GUARD
    for life in lives:
        offsets[life.buffer] = _up(end + GUARD, max(alignment, life.alignment, _GUARD_ALIGNMENT))
        end = offsets[life.buffer] + life.size
    return offsets


def workspace_size(lives: Sequence[Lifetime], offsets: Mapping[Buffer, int]) -> int:
    """Return the bytes from 0 to the end of the highest buffer."""
    return max((offsets[life.buffer] + life.size for life in lives), default=0)


Fit = tuple[dict[int, int], int]
"""Offsets by the buffer's number, and the bytes that they take together."""


@dataclass(frozen=True, slots=True)
class _Partial:
    """A partial placement: offsets may be negative, `bottom` is the lowest, `top` the end."""

    offsets: Mapping[int, int]
    bottom: int
    top: int

    @property
    def size(self) -> int:
        return self.top - self.bottom


_EMPTY = _Partial({}, 0, 0)


@dataclass(frozen=True, slots=True)
class Fitter:
    """Buffers by number, their alignments and the distances between them.

    `above[a][b]` is how far b starts behind a if it lies above a; absent if they never meet.
    `bound` is a size that no aligned placement goes below.
    """

    lives: Sequence[Lifetime]
    alignments: Sequence[int]
    above: Sequence[Mapping[int, int]]
    bound: int

    @staticmethod
    def of(lives: Sequence[Lifetime], alignment: int) -> Fitter:
        above: list[dict[int, int]] = [{} for _ in lives]
        order = sorted(range(len(lives)), key=lambda n: lives[n].begin)
        for position, a in enumerate(order):
            for b in order[position + 1 :]:
                if lives[b].begin >= lives[a].end:
                    break
                up, down = lives[a].distance(lives[b]), lives[b].distance(lives[a])
                if up is not None and down is not None:
                    above[a][b], above[b][a] = up, down
        needs = [max(alignment, life.alignment) for life in lives]
        bound = max(_aligned_bound(lives, alignment), _pair_bound(lives, above))
        return Fitter(lives, needs, above, bound)

    def fit(self, order: Iterable[int]) -> Fit:
        offsets: dict[int, int] = {}
        bottom = top = 0
        for number in order:
            at = self._best(_Partial(offsets, bottom, top), number)
            offsets[number] = at
            bottom, top = min(bottom, at), max(top, at + self.lives[number].size)
        return self.finished(_Partial(offsets, bottom, top))

    def extended(self, partial: _Partial, number: int) -> _Partial:
        """Place one more buffer."""
        at, size = self._best(partial, number), self.lives[number].size
        bottom, top = min(partial.bottom, at), max(partial.top, at + size)
        return _Partial({**partial.offsets, number: at}, bottom, top)

    def _best(self, partial: _Partial, number: int) -> int:
        """Return the place that makes the whole least larger, then the lowest one."""
        offsets, bottom, top = partial.offsets, partial.bottom, partial.top
        size, need = self.lives[number].size, self.alignments[number]
        gaps = [
            (offsets[n] - down, offsets[n] + self.above[n][number])
            for n, down in self.above[number].items()
            if n in offsets
        ]
        places = [_up(high, need) for _, high in gaps] + [_down(low, need) for low, _ in gaps]
        free = [p for p in (0, *places) if all(p <= low or p >= high for low, high in gaps)]
        return min(free, key=lambda p: (max(top, p + size) - min(bottom, p), abs(p), p))

    def finished(self, partial: _Partial) -> Fit:
        """Return offsets from 0 on."""
        shift = _down(partial.bottom, max(self.alignments, default=1))
        return {n: at - shift for n, at in partial.offsets.items()}, partial.top - shift


def _aligned_bound(lives: Sequence[Lifetime], alignment: int) -> int:
    """Return the bytes that no placement at multiples of `alignment` can go below.

    Where all buffers of a moment keep all of their bytes, each but the highest is followed by
    another, at a multiple; one that keeps a part may begin its part anywhere.
    """
    moments = max((life.end for life in lives), default=0)
    total, most = np.zeros(moments, np.int64), np.zeros(moments, np.int64)
    whole = np.ones(moments, np.bool_)
    for life in lives:
        window = slice(life.begin, life.end)
        counted = life.counted
        padding = np.where(counted > 0, -life.size % alignment, 0)
        whole[window] &= (counted == 0) | (counted == life.size)
        total[window] += counted + padding
        most[window] = np.maximum(most[window], padding)
    return max(int((total - most)[whole].max(initial=0)), lower_bound(lives))


def _pair_bound(lives: Sequence[Lifetime], above: Sequence[Mapping[int, int]]) -> int:
    """Return the bytes that two buffers need by themselves, whichever lies above."""
    bound = 0
    for a, others in enumerate(above):
        for b, distance in others.items():
            up = max(lives[a].size, max(distance, 0) + lives[b].size)
            down = max(lives[b].size, max(above[b][a], 0) + lives[a].size)
            bound = max(bound, min(up, down))
    return bound


def _up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _down(value: int, multiple: int) -> int:
    return value // multiple * multiple
