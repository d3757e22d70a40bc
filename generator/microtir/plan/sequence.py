"""Orders operators so that few bytes are alive at once.

Any order in which tensors are made before they are read computes the same.  A graph falls into
segments at the operators that all others come before or behind; within each the order with the
lowest peak is searched for.

Source: dynamic programming over sets of operators that have run, as in B. H. Ahn et al., "Ordering
Chaos: Memory-Aware Scheduling of Irregularly Wired Neural Networks for Edge Devices" (2020), here
as a search for the path with the lowest peak that runs at once what can do no harm, and joins
chains beforehand as J. W. H. Liu, "An Application of Generalized Tree Pebbling to Sparse Matrix
Factorization" (1987), does.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

# Sets of operators that the exact search of a segment makes before it gives up.
_MOST_STATES = 1 << 12
# Sets that the other search goes on with at each turn, if that makes no more of them in all.
_BEAM = 16

Bits = int
"""A set of numbers: those of its bits that are one."""


@dataclass(frozen=True, slots=True)
class Use:
    """The memory that an operator uses: numbers of buffers, and bytes for itself while it runs.

    It needs the results of the operators `after`.  `saved` has buffers that it reads, buffers that
    it writes, and the bytes that they share where the first dies: at most those of the smaller.
    """

    after: Bits
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    scratch: int = 0
    saved: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """The buffers alive once some operators have run, and the peak of bytes on the way."""

    done: Bits = 0
    alive: Bits = 0
    bytes: int = 0
    peak: int = 0


class Demand:
    """The memory that operators need, whatever their order.

    Args:
        uses: of each operator, in an order that is legal.
        sizes: bytes of each buffer.
        born: buffers that are there before the first operator.
        lasting: buffers that are there after the last one.
    """

    def __init__(
        self,
        uses: Sequence[Use],
        sizes: Sequence[int],
        born: Iterable[int] = (),
        lasting: Iterable[int] = (),
    ) -> None:
        self.uses = tuple(uses)
        self.sizes = tuple(sizes)
        alive = sum(1 << b for b in set(born))
        self.start = State(alive=alive, bytes=sum(sizes[b] for b in _numbers(alive)))
        self.lasting = frozenset(lasting)
        self.users, self.writers = [0] * len(sizes), [0] * len(sizes)
        for number, use in enumerate(uses):
            for buffer in use.writes:
                self.writers[buffer] |= 1 << number
            for buffer in (*use.reads, *use.writes):
                self.users[buffer] |= 1 << number

    def run(self, state: State, operator: int) -> State:
        """Return what is there after one more operator."""
        use = self.uses[operator]
        done = state.done | 1 << operator
        alive, now = state.alive, state.bytes
        for buffer in use.writes:
            if not alive >> buffer & 1:
                alive |= 1 << buffer
                now += self.sizes[buffer]
        shared = 0
        for read, written, saved in use.saved:
            if saved > shared and self._dies(read, done) and not state.alive >> written & 1:
                shared = saved
        peak = max(state.peak, now + use.scratch - shared)
        for buffer in (*use.reads, *use.writes):
            if alive >> buffer & 1 and self._dies(buffer, done):
                alive &= ~(1 << buffer)
                now -= self.sizes[buffer]
        return State(done, alive, now, peak)

    def run_all(self, state: State, operators: Iterable[int]) -> State:
        """Return what is there after some more operators."""
        for operator in operators:
            state = self.run(state, operator)
        return state

    def peak(self, order: Iterable[int]) -> int:
        """Return the most bytes that live at once in an order of all operators."""
        return self.run_all(self.start, order).peak

    def _dies(self, buffer: int, done: Bits) -> bool:
        return not self.users[buffer] & ~done and buffer not in self.lasting


def best_order(demand: Demand) -> tuple[int, ...]:
    """Return the order of operators with a low peak in each segment; as given where none is lower.

    It is the lowest where segments are narrow enough for an exact search.
    """
    order: list[int] = []
    state = demand.start
    kin = _Kin.of(demand)
    for first, stop in kin.segments():
        segment = range(first, stop)
        best = _best_in_segment(demand, kin, replace(state, peak=0), segment)
        order += best
        state = demand.run_all(state, best)
    return tuple(order)


def depth_first(demand: Demand) -> tuple[int, ...]:
    """Return the order in which what needs the newest result runs next."""
    order: list[int] = []
    done: Bits = 0
    ready = [(0, number) for number, use in enumerate(demand.uses) if not use.after]
    while ready:
        _, operator = heapq.heappop(ready)
        order.append(operator)
        done |= 1 << operator
        for number, use in enumerate(demand.uses):
            if use.after >> operator & 1 and not use.after & ~done:
                heapq.heappush(ready, (-len(order), number))
    return tuple(order)


@dataclass(frozen=True, slots=True)
class _Kin:
    """The operators that come before each operator and those that come behind, in any order."""

    before: Sequence[Bits]
    behind: Sequence[Bits]

    @staticmethod
    def of(demand: Demand) -> _Kin:
        before: list[Bits] = []
        behind = [0] * len(demand.uses)
        for use in demand.uses:
            before.append(use.after)
            for earlier in _numbers(use.after):
                before[-1] |= before[earlier]
        for number, earlier in enumerate(before):
            for other in _numbers(earlier):
                behind[other] |= 1 << number
        return _Kin(before, behind)

    def segments(self) -> Iterator[tuple[int, int]]:
        """Yield first operator and the one behind the last of what stays together in any order.

        Each but the last ends in an operator that all others come before or behind.
        """
        first, everything = 0, (1 << len(self.before)) - 1
        for number, (before, behind) in enumerate(zip(self.before, self.behind, strict=True)):
            if before | behind | 1 << number == everything:
                yield first, number + 1
                first = number + 1
        if first < len(self.before):
            yield first, len(self.before)

    def bound(self, demand: Demand, operator: int) -> int:
        """Return the bytes that live while an operator runs, whatever the order."""
        use = demand.uses[operator]
        before, later = self.before[operator], self.behind[operator] | 1 << operator
        least = use.scratch - max((saved for *_, saved in use.saved), default=0)
        for buffer, users in enumerate(demand.users):
            is_there = demand.start.alive >> buffer & 1 or demand.writers[buffer] & before
            is_read = users & later or buffer in demand.lasting
            if buffer in use.writes or (is_there and is_read):
                least += demand.sizes[buffer]
        return least


def _best_in_segment(demand: Demand, kin: _Kin, start: State, segment: range) -> Sequence[int]:
    """Return the order with the lowest peak that is found for operators that stay together."""
    if len(segment) == 1:
        return segment
    peak = demand.run_all(start, segment).peak
    least = max(kin.bound(demand, number) for number in segment)
    if peak <= least:
        return segment
    search = _Search(demand, segment, replace(start, peak=least))
    best = search.beam(peak)
    if best is not None:
        peak = demand.run_all(start, best).peak
    if peak > least:
        best = search.exact(peak) or best
    return segment if best is None else best


@dataclass(frozen=True, slots=True)
class _Path:
    """Chains that have run, what is there then, and the chains that could go on, by number."""

    state: State
    operators: tuple[int, ...]
    ready: tuple[int, ...]


class _Search:
    """Looks for orders of the operators of a segment.

    Args:
        demand: of the graph.
        operators: those that are to run, in an order that is legal.
        start: what is there before them.
    """

    def __init__(self, demand: Demand, operators: Sequence[int], start: State) -> None:
        self._demand = demand
        self._all = sum(1 << n for n in operators)
        self._chains = _chains(demand, operators)
        self._may_settle = [_Profile.of(demand, chain).left <= 0 for chain in self._chains]
        self._needs: list[Bits] = []
        self._behind: list[list[int]] = [[] for _ in self._chains]
        chain_of = {n: number for number, chain in enumerate(self._chains) for n in chain}
        for number, chain in enumerate(self._chains):
            needs = 0
            for operator in chain:
                needs |= demand.uses[operator].after
            needs &= ~sum(1 << n for n in chain)
            self._needs.append(needs)
            for other in dict.fromkeys(chain_of[n] for n in _numbers(needs & self._all)):
                self._behind[other].append(number)
        ready = (n for n, needs in enumerate(self._needs) if not needs & ~start.done)
        self._start = self._settled(_Path(start, (), tuple(ready)))

    def exact(self, below: int) -> Sequence[int] | None:
        """Return the order with the lowest peak; None if none is lower than `below`.

        States are looked at in the order of their peaks, so that the first one with all operators
        has the lowest.  None also where it takes too many states.
        """
        counter = count()
        heap = [(self._start.state.peak, 0, next(counter), self._start)]
        known = {self._start.state.done: self._start.state.peak}
        steps = 0
        while heap and steps < _MOST_STATES:
            peak, _, _, path = heapq.heappop(heap)
            if not path.ready:
                return path.operators
            if known[path.state.done] < peak:
                continue
            for longer in self._next(path):
                steps += 1
                after = longer.state
                if after.peak < known.get(after.done, below):
                    known[after.done] = after.peak
                    entry = (after.peak, -len(longer.operators), next(counter), longer)
                    heapq.heappush(heap, entry)
        return None

    def beam(self, below: int) -> Sequence[int] | None:
        """Search an order with a peak below `below` by the best few states; None if none."""
        paths = [self._start]
        best: Sequence[int] | None = None
        # There are no more turns than chains, and no more ways to go on.
        most = max(min(_BEAM, _MOST_STATES // len(self._chains) ** 2), 1)
        while paths:
            longer_paths: dict[Bits, _Path] = {}
            for path in paths:
                if not path.ready and path.state.peak < below:
                    best, below = path.operators, path.state.peak
                for longer in self._next(path):
                    after = longer.state
                    known = longer_paths.get(after.done)
                    if after.peak < (below if known is None else known.state.peak):
                        longer_paths[after.done] = longer
            survivors = (p for p in longer_paths.values() if p.state.peak < below)
            paths = sorted(survivors, key=lambda p: (p.state.peak, p.state.bytes, p.operators))[
                :most
            ]
        return best

    def _next(self, path: _Path) -> Iterator[_Path]:
        """Yield each way to go on."""
        for chain in path.ready:
            after = self._demand.run_all(path.state, self._chains[chain])
            yield self._settled(self._longer(path, chain, after))

    def _longer(self, path: _Path, chain: int, after: State) -> _Path:
        ready = [n for n in path.ready if n != chain]
        ready += [n for n in self._behind[chain] if not self._needs[n] & ~after.done]
        return _Path(after, (*path.operators, *self._chains[chain]), tuple(sorted(ready)))

    def _settled(self, path: _Path) -> _Path:
        """Return the path after every chain that raises neither the peak nor the bytes in use.

        To run such a chain later is never better: it would free no more, and the buffers that it
        frees would be in use until then.
        """
        settled: _Path | None = None
        while settled is not path:
            settled = path
            for chain in filter(self._may_settle.__getitem__, settled.ready):
                after = self._demand.run_all(path.state, self._chains[chain])
                if after.peak <= path.state.peak and after.bytes <= path.state.bytes:
                    path = self._longer(path, chain, after)
        return path


def _chains(demand: Demand, operators: Sequence[int]) -> list[tuple[int, ...]]:
    """Return operators, joined where one may as well wait for the only one that needs its result.

    So it is where the first takes no less memory when it is done, and where it lives at its peak
    beside no more than the second does then.
    """
    needed_by = [0] * len(demand.uses)
    for number, use in enumerate(demand.uses):
        for earlier in _numbers(use.after):
            needed_by[earlier] |= 1 << number
    chains: list[tuple[int, ...]] = [(number,) for number in operators]
    at = 0
    while at < len(chains):
        chain = chains[at]
        second = _only_reader(demand, chains, chain, needed_by[chain[-1]])
        first = _Profile.of(demand, chain)
        if second is not None and first.waits_for(_Profile.of(demand, second)):
            chains[chains.index(second)] = (*chain, *second)
            del chains[at]
            at = 0
        else:
            at += 1
    return chains


def _only_reader(
    demand: Demand, chains: Sequence[tuple[int, ...]], chain: tuple[int, ...], needed_by: Bits
) -> tuple[int, ...] | None:
    """Return the chain that alone reads what another one has written, if there is one."""
    written = {b for number in chain for b in demand.uses[number].writes}
    for other in chains:
        both = sum(1 << n for n in (*chain, *other))
        if other is not chain and needed_by and not needed_by & ~both:
            return other if all(not demand.users[b] & ~both for b in written) else None
    return None


@dataclass(frozen=True, slots=True)
class _Profile:
    """The memory of a chain beyond what is there before it: at its peak, and when it is done.

    `low` and `left` are the least that it may be, `high` the most: who else reads what it reads may
    have run or not.
    """

    low: int
    high: int
    left: int

    @staticmethod
    def of(demand: Demand, chain: Sequence[int]) -> _Profile:
        inside = sum(1 << n for n in chain)
        done, written = 0, set[int]()
        low = high = left = most = 0
        for number in chain:
            use = demand.uses[number]
            done |= 1 << number
            for buffer in use.writes:
                most += 0 if buffer in written else demand.sizes[buffer]
                is_new = buffer not in written and not demand.writers[buffer] & ~inside
                left += demand.sizes[buffer] if is_new else 0
                written.add(buffer)
            high = max(high, most + use.scratch)
            low = max(low, left + use.scratch - max((s for *_, s in use.saved), default=0))
            for buffer in dict.fromkeys((*use.reads, *use.writes)):
                users = demand.users[buffer]
                if buffer not in demand.lasting and not users & inside & ~done:
                    left -= demand.sizes[buffer]
                    most -= demand.sizes[buffer] if not users & ~inside else 0
        return _Profile(low, high, left)

    def waits_for(self, second: _Profile) -> bool:
        """Return whether it may as well run just before the one that reads it."""
        return self.left >= 0 and self.high - self.left <= second.low


def _numbers(bits: Bits) -> Iterator[int]:
    """Yield the members of a set, in ascending order."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
