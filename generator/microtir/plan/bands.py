"""Runs of operators that are computed in bands of columns, where columns may be computed twice.

Rings are as wide as the image.  Cut into bands, a group needs rings of a band's width, and the
columns at the edges of bands are computed in both: less memory for more multiply-accumulates.
Every run of operators that could be cut, in so many bands, takes some bytes and some of the
budget; dynamic programming over the positions of the graph keeps what no other takes less of both
than.  Bytes are those of a nest on the band's columns, as `plan.grouping` counts them for whole
rows; the graph that is cut is planned like any other, and only then has bytes that count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from microtir.graph.ir import Tensor
from microtir.plan.grouping import Choices, longest_members, streamable_candidates
from microtir.plan.nest import History
from microtir.plan.nest_simulations import NestSimulations
from microtir.plan.ranking import Bytes, RankedCandidates, RankedKernels
from microtir.plan.storage import Storage
from microtir.rewrite.facts.columns import (
    Columns,
    Cut,
    ask_inputs,
    bands_of,
    column_window,
    width_of,
)
from microtir.rewrite.facts.macs import macs

# More bands take little less: what is whole, and the columns that all of them need, stays.
_COUNTS = (2, 3, 4, 6, 8)

# A plan is looked at if it promises to take so much less than one that computes less twice.
_GAIN = 0.02
_MOST_PLANS = 4
_LONGEST_FRONT = 64

Cuts: TypeAlias = tuple[Cut, ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Operators [start, stop), the bytes that they take, and what they compute twice, in MACs."""

    start: int
    stop: int
    bytes: int
    again: int = 0
    cut: Cut | None = None


@dataclass(frozen=True, slots=True)
class _State:
    """The peak memory of operators up to a position, their repeated work, and the cuts so far."""

    bytes: int
    again: int
    cuts: Cuts


def cuts_worth_planning(
    choices: Choices,
    ranked: Sequence[RankedKernels],
    storage: Storage,
    again: int,
    simulations: NestSimulations,
) -> tuple[Cuts, ...]:
    """Return the ways to cut a graph that promise less memory, the one with the fewest MACs first.

    Args:
        choices: of the graph without cuts.
        ranked: one for each node, in graph order.
        storage: of all tensors that are not constant.
        again: multiply-accumulates that may be done twice.
        simulations: what is known of nests, and what becomes known here.
    """
    pieces = [_Piece(start, stop, least) for start, stop, least in choices.needs()]
    able = [streamable_candidates(o.rows) for o in ranked]
    for stop in range(1, len(ranked) + 1):
        sink = able[stop - 1]
        if sink is not None:
            pieces += _cut_nests(able, sink, stop, storage, simulations)
    cuts: list[Cuts] = []
    least = choices.least
    for state in _front(pieces, len(ranked), again):
        if state.cuts and state.bytes <= least * (1 - _GAIN):
            cuts.append(state.cuts)
            least = state.bytes
    if len(cuts) <= _MOST_PLANS:
        return tuple(cuts)
    last = len(cuts) - 1
    return tuple(cuts[number * last // (_MOST_PLANS - 1)] for number in range(_MOST_PLANS))


def _front(pieces: Sequence[_Piece], operators: int, again: int) -> list[_State]:
    """Return what no other takes less bytes and less MACs than, in ascending order of MACs."""
    by_stop: dict[int, list[_Piece]] = {}
    for piece in pieces:
        by_stop.setdefault(piece.stop, []).append(piece)
    fronts: list[list[_State]] = [[_State(0, 0, ())]]
    for stop in range(1, operators + 1):
        states = [
            _State(
                max(before.bytes, piece.bytes),
                before.again + piece.again,
                before.cuts if piece.cut is None else (*before.cuts, piece.cut),
            )
            for piece in by_stop.get(stop, ())
            for before in fronts[piece.start]
            if before.again + piece.again <= again
        ]
        states.sort(key=lambda s: (s.again, s.bytes, len(s.cuts)))
        front: list[_State] = []
        for state in states:
            if not front or state.bytes < front[-1].bytes:
                front.append(state)
        fronts.append([*front[:1], *front[1:][-_LONGEST_FRONT:]])
    return fronts[-1]


def _cut_nests(
    steps: Sequence[RankedCandidates | None],
    sink: RankedCandidates,
    stop: int,
    storage: Storage,
    simulations: NestSimulations,
) -> Iterator[_Piece]:
    """Yield every nest of several operators that ends in `sink`, cut into bands."""
    members, _, known = longest_members(steps, sink, stop, 1, simulations)
    image = sink.operator.node.output
    if column_window(sink.node) is None:
        return
    for count in _COUNTS:
        if count <= width_of(image):
            yield from _Cutting(members, stop, storage, known, count).pieces()


@dataclass(slots=True)
class _Cutting:
    """The nests that end in the last of `members`, in so many bands."""

    members: Sequence[RankedCandidates]
    stop: int
    storage: Storage
    known: Mapping[Tensor, History]
    count: int

    def pieces(self) -> Iterator[_Piece]:
        """Yield the nests from the shortest on, as long as all operators can be cut."""
        image = self.members[-1].node.output
        bands = [{image: columns} for columns in bands_of(width_of(image), self.count)]
        nodes = self._ring(image, bands)
        again, around, scratch = 0, dict[Tensor, int](), 0
        for number in range(len(self.members) - 1, -1, -1):
            member, first = self.members[number], self.stop - len(self.members) + number
            tensor = member.node.output
            around.update({t: t.type.bytes for t in self.storage.living[first] if t not in around})
            if tensor is not image:
                if not self._stays(tensor) or tensor not in bands[0]:
                    return
                around.pop(tensor, None)
                nodes = nodes + self._ring(tensor, bands)
            if not all(ask_inputs(member.node, columns) for columns in bands):
                return
            again += self._again(member, bands)
            scratch = max(scratch, member.least)
            if number < len(self.members) - 1:
                slices = self._slices(self.members[number:], bands)
                need = int(nodes.max()) + slices + scratch + sum(around.values())
                cut = Cut(first, self.stop, self.count)
                yield _Piece(first, self.stop, need, again, cut)

    def _stays(self, tensor: Tensor) -> bool:
        """Return whether a tensor is seen inside the nest only, and its rows come in time."""
        return self.storage.is_internal(tensor, self.stop) and not self.known[tensor].missing

    def _ring(self, tensor: Tensor, bands: Sequence[Mapping[Tensor, Columns]]) -> Bytes:
        """Return the bytes of a tensor's ring at each call, in the widest band."""
        history = self.known[tensor]
        widest = max(columns[tensor].width for columns in bands)
        height = 1 if tensor is self.members[-1].node.output else history.height
        row = tensor.type.row_bytes * widest // width_of(tensor)
        ring: Bytes = history.alive * (height * row)
        return ring

    def _slices(
        self, members: Sequence[RankedCandidates], bands: Sequence[Mapping[Tensor, Columns]]
    ) -> int:
        """Return the bytes of rings for what operators read that is narrower than where it lies."""
        inside = {member.node.output for member in members}
        rings: dict[tuple[Tensor, Tensor], int] = {}
        for member in members:
            window = column_window(member.node)
            assert window is not None, "it has been asked for its inputs"
            output = member.node.output
            for tensor in member.operator.inputs:
                width, row = width_of(tensor), tensor.type.row_bytes
                for columns in bands:
                    there = columns[tensor] if tensor in inside else Columns(0, width)
                    needed = window.needed(columns[output], width)
                    if needed != there:
                        rows = member.operator.window(tensor).extent
                        size = rows * row * needed.width // width
                        rings[tensor, output] = max(rings.get((tensor, output), 0), size)
        return sum(rings.values())

    def _again(self, member: RankedCandidates, bands: Sequence[Mapping[Tensor, Columns]]) -> int:
        """Return the multiply-accumulates of an operator that two bands do."""
        ranges = [columns[member.node.output] for columns in bands]
        twice = sum(max(before.stop - after.first, 0) for before, after in pairwise(ranges))
        return twice * (macs(member.node) // width_of(member.node.output))
