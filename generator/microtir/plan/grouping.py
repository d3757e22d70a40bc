"""Chooses which consecutive operators stream together, and what each is computed by.

Every way to run operators [start, stop) as one group is a choice: what lives across it, its rings
at the fullest moment of each operator, and its inputs and outputs, less what an output may share
with an input that dies under it.  What is left of a limit is room for scratch, and with less room
an operator takes a slower kernel.  So a choice has a price for each limit, and dynamic
programming over the positions of the graph finds the cheapest plan within a limit, or the least
limit that has a plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np

from microtir.graph.ir import Tensor
from microtir.plan.ir import Group, PlannedOperator
from microtir.plan.nest import History, Rows, histories, nest_of, runs_of, streamable
from microtir.plan.nest_simulations import NestSimulation, NestSimulations
from microtir.plan.ranking import NO_PRICE, Prices, RankedCandidates, RankedKernels
from microtir.plan.storage import Overlaps, Storage

# A nest this deep is beyond what pays, and keeps planning time linear in the operators.
LONGEST_GROUP = 40

_UNREACHED = 1 << 62  # more than any plan is charged, and with a price added still 64 bits


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Operators [start, start + len(ranked)) as one group; a nest or a single call.

    `taken` holds for each of them the bytes that everything but its scratch takes at the fullest
    of its calls.  In a nest a call computes `rows_per_call` rows; 0 stands for a single call.
    """

    start: int
    ranked: tuple[RankedCandidates, ...]
    taken: Rows
    rows_per_call: int

    @property
    def stop(self) -> int:
        return self.start + len(self.ranked)

    def group(self, limit: int) -> Group:
        """Return the group with the best candidates within a limit that it has a price for."""
        members = tuple(
            PlannedOperator(o.node, o.within(limit - t))
            for o, t in zip(self.ranked, self.taken.tolist(), strict=True)
        )
        return Group(members, nest_of(members, self.rows_per_call) if self.rows_per_call else None)

    def bytes(self, limit: int) -> int:
        """Return what the group with the best candidates within a limit takes."""
        taken: list[int] = self.taken.tolist()
        return max(
            t + o.within(limit - t).scratch_bytes for o, t in zip(self.ranked, taken, strict=True)
        )


class Choices:
    """Every choice of a graph.

    Args:
        ranked: one for each node, in graph order.
        storage: of all tensors that are not constant.
        simulations: what is known of nests, and what becomes known here.
    """

    def __init__(
        self, ranked: Sequence[RankedKernels], storage: Storage, simulations: NestSimulations
    ) -> None:
        self._storage = storage
        self._within: dict[int, Rows] = {}
        self._operators = len(ranked)
        whole = [_whole(storage, number, o.whole) for number, o in enumerate(ranked)]
        calls = Prices([(c.ranked, c.taken) for c in whole])
        # A nest that takes more than all calls on their own is of no use.
        self.most = int(calls.most.max(initial=0))
        limit = int(calls.least.max(initial=0))
        self._all = whole
        for rows_per_call in _ways(ranked):
            ends = [o.steps(rows_per_call) for o in ranked]
            steps = [streamable_candidates(rows) for rows, _ in ends]
            for stop, (_, accumulated) in enumerate(ends, 1):
                alone_rows = ranked[stop - 1].alone[rows_per_call - 1]
                sinks = ((steps[stop - 1], alone_rows), (streamable_candidates(accumulated), None))
                for sink, single in sinks:
                    if sink is not None:
                        longest = longest_members(steps, sink, stop, rows_per_call, simulations)
                        nest = _LongestNest(*longest, stop)
                        taken = _taken_once(nest, storage, limit, simulations)
                        choices = nest.choices(taken, rows_per_call)
                        self._all += (_by_itself(choice, single) for choice in choices)
        self._all.sort(key=lambda choice: (choice.stop, -choice.start))
        self._prices = Prices([(c.ranked, c.taken) for c in self._all])
        self._starts = np.array([choice.start for choice in self._all], np.int64)
        stops = [choice.stop for choice in self._all]
        self._ends = np.searchsorted(stops, range(self._operators + 2))

    @cached_property
    def least(self) -> int:
        """Return the smallest limit, in bytes, within which there is a plan."""
        return self._best(self._prices.least, np.maximum)[1]

    def needs(self) -> Iterator[tuple[int, int, int]]:
        """Yield first operator and the one behind the last of each choice, and its least bytes."""
        for choice, least in zip(self._all, self._prices.least.tolist(), strict=True):
            yield choice.start, choice.stop, least

    def _priced(self, limit: int) -> Rows:
        """Return price of each choice within a limit: a limit that was compared is often taken."""
        if limit not in self._within:
            self._within[limit] = self._prices.within(limit)
        return self._within[limit]

    def price(self, limit: int) -> int:
        """Return what the cheapest plan within a limit in bytes, `least` or more, is charged."""
        return self._best(self._priced(limit), np.add)[1]

    def cheapest(self, limit: int) -> tuple[tuple[Group, ...], int]:
        """Return the groups with the least price within a limit in bytes, and the bytes they take.

        Args:
            limit: `least` or more.
        """
        path, _ = self._best(self._by_single_rows(limit), np.add)
        groups = _turned([choice.group(limit) for choice in path], self._storage)
        return groups, max((choice.bytes(limit) for choice in path), default=0)

    def _by_single_rows(self, limit: int) -> Rows:
        """Return the price of each choice within a limit, without pairs of rows.

        Overlaps are counted by rows here.  What an output takes over within a row, placement finds
        on top, so that a choice at the least limit may turn out smaller, and the program with it.
        With two rows a call it does not: where one row would need less, two would decide the size.
        """
        prices = self._priced(limit)
        if limit > self.least:
            return prices
        needs = self._prices.least
        single = {
            _span(choice): need
            for choice, need in zip(self._all, needs.tolist(), strict=True)
            if choice.rows_per_call == 1
        }
        dear = [
            choice.rows_per_call > 1 and need == limit and single.get(_span(choice), need) < need
            for choice, need in zip(self._all, needs.tolist(), strict=True)
        ]
        return np.where(dear, NO_PRICE, prices)

    def _best(self, values: Rows, join: np.ufunc) -> tuple[tuple[Choice, ...], int]:
        """Return path of adjoining choices from first to last operator of least value, and that.

        Args:
            values: one for each choice, NO_PRICE for what cannot be chosen.
            join: of the value of a path and that of what follows it.
        """
        best = np.zeros(self._operators + 1, np.int64)
        chosen: list[int] = []
        for stop in range(1, self._operators + 1):
            at = slice(self._ends[stop], self._ends[stop + 1])
            joined = np.minimum(join(best[self._starts[at]], values[at]), _UNREACHED)
            joined[values[at] >= NO_PRICE] = _UNREACHED
            number = int(joined.argmin())
            best[stop] = joined[number]
            chosen.append(int(self._ends[stop]) + number)
        assert best[-1] < _UNREACHED, "every operator can run in one call"
        path: list[Choice] = []
        position = self._operators
        while position:
            path.append(self._all[chosen[position - 1]])
            position = path[-1].start
        return tuple(reversed(path)), int(best[-1])


def _span(choice: Choice) -> tuple[int, int]:
    return choice.start, choice.stop


def _turned(groups: Sequence[Group], storage: Storage) -> tuple[Group, ...]:
    """Return the groups with every other overlap turned round.

    An output that is written forward over its dying input begins below it.  A chain of such
    outputs would drift downwards, each a distance below the one before; one that is written
    backward ends above its input instead, and the next one may go down again.
    """
    low: set[Tensor] = set()  # begins below the input that it was written over
    turned = []
    for group in groups:
        if group.nest is not None and not group.nest.operator.candidate.accumulates:
            sink = group.nest.operator
            over_low = any(storage.root[t] in low for t in sink.inputs)
            if len(group.operators) == 1 and over_low:
                group = replace(group, backward=True)
            else:
                low.add(storage.root[sink.node.output])
        turned.append(group)
    return tuple(turned)


def rings(groups: Sequence[Group], storage: Storage) -> dict[Tensor, int]:
    """Return the row slots of each tensor that stays inside its group."""
    heights: dict[Tensor, int] = {}
    stop = 0
    for group in groups:
        stop += len(group.operators)
        if group.nest is not None:
            outputs = [op.node.output for op in group.operators[:-1]]
            inside = [t for t in outputs if storage.is_internal(t, stop)]
            known = histories(runs_of(group.nest), inside)
            heights.update({t: history.height for t, history in known.items()})
    return heights


def _whole(storage: Storage, number: int, ranking: RankedCandidates) -> Choice:
    """Return an operator in one call, or in none."""
    taken = 0
    if not ranking.candidates[0].is_view:
        taken = sum(map(storage.bytes, storage.living[number]))
    return Choice(number, (ranking,), np.array([taken]), rows_per_call=0)


def _ways(ranked: Sequence[RankedKernels]) -> tuple[int, ...]:
    """Return how many rows a call of a nest may compute.

    Two only where a kernel does better then.
    """
    steps = [o.rows for o in ranked if o.rows is not None]
    gains = any(c.gains_by_pairs for ranking in steps for c in ranking.candidates)
    pairs = (o.alone[1] for o in ranked)
    gains |= any(c.gains_by_pairs for o in pairs if o is not None for c in o.candidates)
    return (1, 2) if gains else (1,)


def _by_itself(choice: Choice, alone: RankedCandidates | None) -> Choice:
    """Return the choice with what its operator may be computed by if there is no other one."""
    if len(choice.ranked) > 1 or alone is None:
        return choice
    return replace(choice, ranked=(alone,))


def streamable_candidates(ranking: RankedCandidates | None) -> RankedCandidates | None:
    """Return the candidates if they can be a step of a nest."""
    return ranking if ranking is not None and streamable(ranking.operator) else None


@dataclass(frozen=True, slots=True, eq=False)
class _LongestNest:
    """The longest nest that ends in an operator; each shorter one is its last members.

    Args:
        members: its operators, of which the last one is the sink.
        simulation: what it does.
        histories: what that does to each tensor that they read or write.
        stop: the number of the operator behind the sink.
    """

    members: Sequence[RankedCandidates]
    simulation: NestSimulation
    histories: Mapping[Tensor, History]
    stop: int

    @property
    def start(self) -> int:
        return self.stop - len(self.members)

    @property
    def accumulator_bytes(self) -> int:
        return self.members[-1].operator.candidate.accumulator_bytes

    def choices(self, taken_by_nest: Sequence[Rows], rows_per_call: int) -> Iterator[Choice]:
        """Yield the choice of every nest, the shortest first, given `Choice.taken` of each."""
        for number, taken in enumerate(taken_by_nest, 1):
            members = tuple(self.members[-number:])
            yield Choice(self.stop - number, members, taken, rows_per_call)


def _taken_once(
    nest: _LongestNest, storage: Storage, limit: int, simulations: NestSimulations
) -> Sequence[Rows]:
    """Return `_taken` of a nest; of those that differ in nothing it reads it is computed once."""
    lives = _lives(storage, nest.histories, nest.start, nest.stop)
    key = (nest.simulation, nest.accumulator_bytes, limit, *lives)
    return simulations.taken(key, lambda: _taken(nest, storage, limit, simulations))


def _lives(
    storage: Storage, known: Mapping[Tensor, History], start: int, stop: int
) -> tuple[object, ...]:
    """Return all that `_taken` reads of a storage for operators [start, stop), as it tells them."""
    living = dict.fromkeys(chain.from_iterable(storage.living[start:stop]))
    numbers: dict[Tensor, int] = {}
    first, last, root = storage.first, storage.last, storage.root
    lives: list[object] = []
    for tensor in living:
        numbers[tensor] = len(numbers)
        begin, end = max(first[tensor], start - 1), min(last[tensor], stop)
        lives += (storage.sizes[tensor], begin - start, end - start)
    for tensor in known:
        lives += (
            numbers.setdefault(root[tensor], len(numbers)),
            storage.sizes[tensor],
            storage.is_internal(tensor, stop),
            root[tensor] in storage.caller,
        )
    return (len(living), *lives)


def _taken(
    nest: _LongestNest, storage: Storage, limit: int, simulations: NestSimulations
) -> tuple[Rows, ...]:
    """Return `Choice.taken` of every nest with rings within a limit, the shortest first.

    What a tensor goes through does not depend on operators before its own, so one execution of
    the longest nest prices all of them.
    """
    members, known, start, stop = nest.members, nest.histories, nest.start, nest.stop
    sink, accumulators = members[-1], nest.accumulator_bytes
    finished = 0  # bytes that live when accumulators become the output
    ring_bytes: list[Rows] = []  # of each tensor, the last one first; 0 where it has no ring
    outside: dict[Tensor, int] = {}  # bytes of tensors that live beside the rings
    begun_by_sink = frozenset[Tensor]()
    if accumulators:
        known = {t: history for t, history in known.items() if t is not sink.node.output}
        begun_by_sink = storage.begins_at(stop - 1)
        finished = accumulators + sum(map(storage.bytes, storage.left_by(stop - 1)))
    # Only inputs are among these: an output in the workspace may take the place of one instead.
    is_alone = accumulators > 0 or storage.root[sink.node.output] in storage.caller
    outer_bytes: list[int] = []  # of all of these, for each nest
    freed: dict[int, Rows] = {}  # by number of the nest, bytes of an input that no call needs now
    overlaps = Overlaps(storage, known, simulations)
    for first in range(stop - 1, start - 1, -1):
        tensor = members[first - start].node.output
        living = (t for t in storage.living[first] if t not in outside and t not in begun_by_sink)
        outside.update({t: storage.bytes(t) for t in living})
        ring_bytes.append(np.zeros(len(nest.simulation), np.int64))
        if first < stop - 1:
            internal = storage.is_internal(tensor, stop)
            if known[tensor].missing or not (internal or known[tensor].is_complete):
                ring_bytes.pop()
                break
            if internal:
                height = known[tensor].height
                ring_bytes[-1] = known[tensor].alive * (height * storage.row_bytes(tensor))
                outside.pop(tensor, None)
        outer_bytes.append(sum(outside.values()) - overlaps.most(outside, first, stop))
        reader = overlaps.drained(outside, first, stop) if is_alone else None
        if reader is not None:
            freed[len(outer_bytes) - 1] = known[reader].read * storage.row_bytes(reader)
    fullest = _fullest(nest.simulation, len(members), ring_bytes, freed) + accumulators
    taken_by_nest: list[Rows] = []
    for number, outer in enumerate(outer_bytes):
        if int(fullest[number].max()) > limit:
            break
        taken = fullest[number, len(members) - 1 - number :] + outer
        taken[-1] = max(int(taken[-1]), finished)
        taken_by_nest.append(taken)
    return tuple(taken_by_nest)


def _fullest(
    simulation: NestSimulation, members: int, ring_bytes: Sequence[Rows], freed: Mapping[int, Rows]
) -> Rows:
    """Return the bytes of rings at the fullest call of each member of the longest nest.

    Args:
        simulation: of that nest.
        members: of that nest, in number.
        ring_bytes: of the ring of each member at each call, the last member first; a row of the
            result adds up those up to its own.
        freed: bytes that are less at each call, by row of the result.
    """
    rings = np.cumsum(ring_bytes, axis=0)
    for number, bytes_ in freed.items():
        rings[number] -= bytes_
    by_member = np.argsort(simulation.ran, kind="stable")
    begins = np.searchsorted(simulation.ran[by_member], np.arange(members))
    fullest: Rows = np.maximum.reduceat(rings[:, by_member], begins, axis=1)
    return fullest


def longest_members(
    steps: Sequence[RankedCandidates | None],
    sink: RankedCandidates,
    stop: int,
    rows_per_call: int,
    simulations: NestSimulations,
) -> tuple[list[RankedCandidates], NestSimulation, dict[Tensor, History]]:
    """Return the longest nest that ends in `sink`, the operator before `stop`.

    Returns:
        Its operators, what it does, and what that does to each tensor that they read or write.
    """
    members = [sink]
    for ranking in reversed(steps[max(stop - LONGEST_GROUP, 0) : stop - 1]):
        if ranking is None:
            break
        members.append(ranking)
    members.reverse()
    simulation = simulations.of([member.operator for member in members], rows_per_call)
    members = members[simulation.start :]
    tensors = simulations.tensors_of([member.operator for member in members])
    return members, simulation, dict(zip(tensors, simulation.known, strict=True))
