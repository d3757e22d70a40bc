"""Chooses which consecutive operators stream together, and what each is computed by.

Every way to run operators [start, stop) as one group is a choice: what lives across it, its rings
at the fullest moment of each operator, and its inputs and outputs, less what an output may share
with an input that dies under it.  What is left of a limit is room for scratch, and with less room
an operator takes a slower kernel.  So a choice has a price for each limit, and dynamic
programming over the positions of the graph finds the cheapest plan within a limit, or the least
limit that has a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import add

import numpy as np

from microtir.graph.ir import Tensor
from microtir.plan.ir import Group, Kernel, PlannedOperator
from microtir.plan.nest import histories, longest_nest, nest_of, runs_of, streamable
from microtir.plan.offers import NO_PRICE, Offer, Offers, Prices
from microtir.plan.storage import Overlaps, Storage

# A nest this deep is beyond what pays, and keeps planning time linear in the operators.
LONGEST_GROUP = 40


@dataclass(frozen=True, slots=True)
class Choice:
    """Operators [start, start + len(offers)) as one group; a nest or a single call.

    `taken` holds for each of them the bytes that everything but its scratch takes at the fullest
    of its calls.
    """

    start: int
    offers: tuple[Offer, ...]
    taken: tuple[int, ...]
    is_nest: bool

    @property
    def stop(self) -> int:
        return self.start + len(self.offers)

    @property
    def least(self) -> int:
        """Bytes that it cannot do without."""
        return max(t + o.least for t, o in zip(self.taken, self.offers, strict=True))

    @property
    def most(self) -> int:
        """Bytes with which every operator has its best candidate."""
        best = [o.candidates[0].scratch_bytes for o in self.offers]
        return max(t + b for t, b in zip(self.taken, best, strict=True))

    def group(self, limit: int) -> Group:
        """The group with the best candidates within a limit that it has a price for."""
        members = tuple(
            PlannedOperator(o.node, o.within(limit - t))
            for o, t in zip(self.offers, self.taken, strict=True)
        )
        return Group(members, nest_of(members) if self.is_nest else None)


class Choices:
    """Every choice of a graph.

    Args:
        offers: one for each node, in graph order.
        storage: of all tensors that are not constant.
    """

    def __init__(self, offers: Sequence[Offers], storage: Storage) -> None:
        self._storage = storage
        self._operators = len(offers)
        self._all = [_whole(storage, number, o.whole) for number, o in enumerate(offers)]
        # A nest that takes more than all calls on their own is of no use.
        self.most = max((choice.most for choice in self._all), default=0)
        limit = max((choice.least for choice in self._all), default=0)
        for stop, last in enumerate(offers, 1):
            for sink in (last.rows, last.accumulated):
                if sink is not None and streamable(sink.operator):
                    self._all += _nests(offers, sink, stop, storage, limit)
        self._all.sort(key=lambda choice: (choice.stop, -choice.start))
        self._prices = Prices([(c.offers, c.taken) for c in self._all])

    @cached_property
    def least(self) -> int:
        """The smallest limit, in bytes, within which there is a plan."""
        path, _ = self._best([c.least for c in self._all], max)
        return max((choice.least for choice in path), default=0)

    def price(self, limit: int) -> int:
        """What the cheapest plan within a limit in bytes, `least` or more, is charged."""
        return self._best(self._prices.within(limit), add)[1]

    def cheapest(self, limit: int) -> tuple[Group, ...]:
        """The groups with the least price within a limit in bytes, `least` or more."""
        path, _ = self._best(self._prices.within(limit), add)
        return _turned([choice.group(limit) for choice in path], self._storage)

    def _best(
        self, values: Sequence[int], join: Callable[[int, int], int]
    ) -> tuple[tuple[Choice, ...], int]:
        """The path of adjoining choices from first to last operator of least value, and that."""
        best: dict[int, tuple[int, Choice | None]] = {0: (0, None)}
        for choice, own in zip(self._all, values, strict=True):
            if choice.start in best and own < NO_PRICE:
                value = join(best[choice.start][0], own)
                known = best.get(choice.stop)
                if known is None or value < known[0]:
                    best[choice.stop] = value, choice
        path: list[Choice] = []
        position = self._operators
        while position:
            last = best[position][1]
            assert last is not None, "every operator can run in one call"
            path.append(last)
            position = last.start
        return tuple(reversed(path)), best[self._operators][0]


def _turned(groups: Sequence[Group], storage: Storage) -> tuple[Group, ...]:
    """The groups with every other overlap turned round.

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
    """Row slots of each tensor that stays inside its group."""
    heights: dict[Tensor, int] = {}
    stop = 0
    for group in groups:
        stop += len(group.operators)
        if group.nest is not None:
            made = [op.node.output for op in group.operators[:-1]]
            inside = [t for t in made if storage.is_internal(t, stop)]
            known = histories(runs_of(group.nest), inside)
            heights.update({t: history.height for t, history in known.items()})
    return heights


def _whole(storage: Storage, number: int, offer: Offer) -> Choice:
    """An operator in one call, or in none."""
    taken = 0
    if offer.candidates[0].kernel is not Kernel.VIEW:
        taken = sum(t.type.bytes for t in storage.living[number])
    return Choice(number, (offer,), (taken,), is_nest=False)


def _nests(
    offers: Sequence[Offers], sink: Offer, stop: int, storage: Storage, limit: int
) -> Iterator[Choice]:
    """Every nest that ends in `sink` and keeps its rings within a limit.

    What a tensor goes through does not depend on operators before its own, so one execution of
    the longest nest prices all of them.
    """
    members = _members(offers, sink, stop)
    start, operators = stop - len(members), [member.operator for member in members]
    nest = nest_of(operators)
    assert nest is not None, "the longest one was asked for"
    runs = runs_of(nest)
    numbers = {operator.node: number for number, operator in enumerate(operators)}
    ran = np.array([numbers[run.operator.node] for run in runs])
    by_member = np.argsort(ran, kind="stable")
    begins = np.searchsorted(ran[by_member], np.arange(len(members)))
    accumulators = operators[-1].candidate.accumulator_bytes
    outputs = [] if accumulators else [sink.node.output]
    seen = dict.fromkeys((*(t for op in operators for t in op.inputs), *outputs))
    known = histories(runs, tuple(seen))
    rings = np.full(len(runs), accumulators)
    inside: set[Tensor] = set()
    living: dict[Tensor, None] = {}
    overlaps = Overlaps(storage, known)
    for first in range(stop - 1, start - 1, -1):
        tensor = members[first - start].node.output
        if first < stop - 1:
            internal = storage.is_internal(tensor, stop)
            if known[tensor].missing or not (internal or known[tensor].is_complete):
                return
            if internal:
                inside.add(tensor)
                rings = rings + known[tensor].alive * known[tensor].height * tensor.type.row_bytes
        fullest = np.maximum.reduceat(rings[by_member], begins)
        if int(fullest.max()) > limit:
            return
        living.update(dict.fromkeys(storage.living[first]))
        around = [t for t in living if t not in inside]
        whole = sum(t.type.bytes for t in around) - overlaps.most(around, first, stop)
        taken = tuple(int(bytes_) + whole for bytes_ in fullest[first - start :])
        yield Choice(first, tuple(members[first - start :]), taken, is_nest=True)


def _members(offers: Sequence[Offers], sink: Offer, stop: int) -> list[Offer]:
    """The operators of the longest nest that ends in `sink`, the operator before `stop`."""
    members = [sink]
    for offer in reversed(offers[max(stop - LONGEST_GROUP, 0) : stop - 1]):
        if offer.rows is None or not streamable(offer.rows.operator):
            break
        members.insert(0, offer.rows)
    start, _ = longest_nest([member.operator for member in members])
    return members[start:]
