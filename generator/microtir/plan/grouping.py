"""Chooses which consecutive operators stream together: least peak memory, then fewest calls.

Dynamic programming over the positions of the graph.  What a group needs is the bytes that live
across it, its rings at the fullest moment of its nest, and its inputs and outputs, less what an
output may share with an input that dies under it.  Rows are never computed twice, so that there
is no second price beside the number of calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from microtir.graph.ir import Tensor
from microtir.plan.ir import Group, Kernel, PlannedOperator, Step
from microtir.plan.nest import NEVER, History, histories, longest_nest, nest_of, runs_of, streamable

# A nest this deep is beyond what pays, and keeps planning time linear in the operators.
LONGEST_GROUP = 40


@dataclass(frozen=True, slots=True)
class Storage:
    """Where tensors live: `root` shares memory with a tensor; `caller` is not the workspace.

    Lifetimes are positions in the graph, both inclusive: -1 for what is there from the start, the
    number of operators for what is needed at the end.
    """

    root: Mapping[Tensor, Tensor]
    first: Mapping[Tensor, int]
    last: Mapping[Tensor, int]
    shared: frozenset[Tensor]
    caller: frozenset[Tensor]

    @staticmethod
    def of(
        operators: Sequence[PlannedOperator],
        root: Mapping[Tensor, Tensor],
        outputs: Sequence[Tensor],
        caller: Sequence[Tensor],
    ) -> Storage:
        first: dict[Tensor, int] = {}
        last: dict[Tensor, int] = {}
        for number, operator in enumerate(operators):
            for tensor in operator.inputs:
                first.setdefault(root[tensor], -1)
                last[root[tensor]] = number
            for tensor in operator.node.outputs:
                first.setdefault(root[tensor], number)
                last[root[tensor]] = number
        last.update({root[tensor]: len(operators) for tensor in outputs})
        shared = [t for t, r in root.items() if t is not r]
        return Storage(
            root, first, last, frozenset((*shared, *(root[t] for t in shared))), frozenset(caller)
        )

    def alive(self, start: int, stop: int) -> Iterator[Tensor]:
        """Roots in the workspace that hold something while operators [start, stop) run."""
        for tensor, first in self.first.items():
            if tensor not in self.caller and first < stop and self.last[tensor] >= start:
                yield tensor

    def is_internal(self, tensor: Tensor, stop: int) -> bool:
        """Whether nobody behind operators [.., stop) sees a tensor, nor what it shares with."""
        return (
            tensor not in self.shared
            and tensor not in self.caller
            and self.last.get(tensor, stop) < stop
        )


@dataclass(frozen=True, slots=True)
class _Choice:
    """Operators [start, stop) as one group; `sink` is the last one if the group is a nest."""

    start: int
    stop: int
    sink: PlannedOperator | None
    peak: int  # bytes
    calls: int


def stream(
    operators: Sequence[PlannedOperator],
    accumulators: Mapping[PlannedOperator, PlannedOperator],
    storage: Storage,
) -> tuple[Group, ...]:
    """Return the groups with the least peak, and of those the ones with the fewest calls.

    Args:
        operators: one for each node, in graph order.
        accumulators: for some of them the same node with an ACCUMULATE kernel.
        storage: of all tensors that are not constant.
    """
    choices = [_whole(storage, number, operator) for number, operator in enumerate(operators)]
    limit = max((choice.peak for choice in choices), default=0)
    for stop, last in enumerate(operators, 1):
        for sink in (last, accumulators.get(last)):
            if sink is not None and streamable(sink):
                choices += _nests(operators, sink, stop, storage, limit)
    peak = max(
        (choice.peak for choice in _least(choices, lambda path, c: max(path, c.peak))), default=0
    )
    chosen = _least([c for c in choices if c.peak <= peak], lambda path, c: path + c.calls)
    return _turned([_group(operators, choice) for choice in chosen], storage)


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


def _least(
    choices: Sequence[_Choice], extend: Callable[[int, _Choice], int]
) -> tuple[_Choice, ...]:
    """The path of adjoining choices, from the first operator to the last, with the least value."""
    best: dict[int, tuple[int, tuple[_Choice, ...]]] = {0: (0, ())}
    for choice in sorted(choices, key=lambda c: (c.stop, -c.start)):
        if choice.start in best:
            value, path = best[choice.start]
            value = extend(value, choice)
            if choice.stop not in best or value < best[choice.stop][0]:
                best[choice.stop] = value, (*path, choice)
    return best[max(best)][1]


def _whole(storage: Storage, number: int, operator: PlannedOperator) -> _Choice:
    """An operator in one call, or in none."""
    if operator.candidate.kernel is Kernel.VIEW:
        return _Choice(number, number + 1, None, 0, 0)
    peak = sum(t.type.bytes for t in storage.alive(number, number + 1))
    return _Choice(number, number + 1, None, peak, 1)


def _group(operators: Sequence[PlannedOperator], choice: _Choice) -> Group:
    if choice.sink is None:
        return Group((operators[choice.start],))
    members = (*operators[choice.start : choice.stop - 1], choice.sink)
    return Group(members, nest_of(members))


def _nests(
    operators: Sequence[PlannedOperator],
    sink: PlannedOperator,
    stop: int,
    storage: Storage,
    limit: int,
) -> Iterator[_Choice]:
    """Every nest that ends in `sink` and keeps its rings within a limit.

    What a tensor goes through does not depend on operators before its own, so one execution of
    the longest nest prices all of them.
    """
    start, nest = _longest(operators, sink, stop)
    members = (*operators[start : stop - 1], sink)
    runs = runs_of(nest)
    calls = Counter(run.operator.node for run in runs)
    outputs = [] if sink.candidate.accumulates else [sink.node.output]
    seen = dict.fromkeys((*(t for op in members for t in op.inputs), *outputs))
    known = histories(runs, tuple(seen))
    rings = np.full(len(runs), sink.candidate.accumulator_bytes)
    inside: set[Tensor] = set()
    count = int(sink.candidate.accumulates)
    for first in range(stop - 1, start - 1, -1):
        tensor = members[first - start].node.output
        if first < stop - 1:
            internal = storage.is_internal(tensor, stop)
            if known[tensor].missing or not (internal or known[tensor].is_complete):
                return
            if internal:
                inside.add(tensor)
                rings = rings + known[tensor].alive * known[tensor].height * _row_bytes(tensor)
        most = int(rings.max())
        if most > limit:
            return
        count += calls[members[first - start].node]
        around = [t for t in storage.alive(first, stop) if t not in inside]
        whole = sum(t.type.bytes for t in around)
        peak = most + whole - _Overlaps(storage, known, first, stop).most(around)
        yield _Choice(first, stop, sink, peak, count)


def _longest(
    operators: Sequence[PlannedOperator], sink: PlannedOperator, stop: int
) -> tuple[int, Step]:
    first = stop - 1
    while first > max(stop - LONGEST_GROUP, 0) and streamable(operators[first - 1]):
        first -= 1
    start, nest = longest_nest((*operators[first : stop - 1], sink))
    return first + start, nest


@dataclass(frozen=True, slots=True)
class _Overlaps:
    """What outputs of the operators [start, stop) may take over from inputs that die in them."""

    storage: Storage
    known: Mapping[Tensor, History]
    start: int
    stop: int

    def most(self, around: Sequence[Tensor]) -> int:
        """Most bytes that one output takes over from one input."""
        dying = [
            t for t in around
            if self.storage.first[t] < self.start and self.storage.last[t] < self.stop
        ]  # fmt: skip
        new = [t for t in around if self.storage.first[t] >= self.start]
        return max((self.of(x, y) for x in dying for y in new), default=0)

    def of(self, x: Tensor, y: Tensor) -> int:
        """Bytes saved by placing y below x at their distance (decision 8)."""
        readers = [t for t in self.known if self.storage.root[t] is x]
        writers = [t for t in self.known if self.storage.root[t] is y]
        if len(readers) != 1 or len(writers) != 1:
            return 0
        (reader,), (writer,) = readers, writers
        oldest, made = self.known[reader].oldest, self.known[writer].made
        both = (oldest != NEVER) & (made > 0)
        ends = made[both] * _row_bytes(writer) - oldest[both] * _row_bytes(reader)
        distance = max(int(ends.max(initial=0)), 0)
        return x.type.bytes + y.type.bytes - max(x.type.bytes + distance, y.type.bytes)


def _row_bytes(tensor: Tensor) -> int:
    return tensor.type.row_elements * tensor.dtype.bytes
