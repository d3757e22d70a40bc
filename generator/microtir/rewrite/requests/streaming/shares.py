"""Rows of each tensor that a push keeps, and rows that it computes.

Going backward from the results, every reader asks for rows of what it reads.  Of those that are
steady, all but the newest are there from an earlier push, as long as every push has computed the
newest ones.  What else is asked for is computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from microtir.graph.ir import Graph, Tensor
from microtir.rewrite.requests.streaming.follow import Follow
from microtir.rewrite.requests.streaming.rows import Rows, reach, runs
from microtir.rewrite.requests.streaming.timelines import Timeline, Timelines


@dataclass(frozen=True, slots=True)
class Share:
    """The rows of a tensor that a push needs.

    Args:
        remembered: those that lie in a state; none where that is empty.
        computed: the others, and the newest that the next pushes keep.
        shift: rows by which a push moves those that are kept.
        turns: states that pushes take in turn.
    """

    remembered: Rows
    computed: tuple[Rows, ...]
    shift: int
    turns: int


def shares_of(graph: Graph, lines: Timelines, hop: int) -> Mapping[Tensor, Share]:
    """Return the share of each tensor with rows along time that a push needs, views left out.

    Args:
        graph: of the whole window.
        lines: its tensors with rows along time.
        hop: frames of a push.
    """
    needed: dict[Tensor, set[int]] = {tensor: set() for tensor in lines.of}
    for tensor in graph.outputs:
        if tensor in needed:
            needed[tensor].update(range(lines.of[tensor].rows))
    shares: dict[Tensor, Share] = {}
    for node in reversed(graph.nodes):
        follows = lines.follows.get(node)
        if follows is None:
            for tensor in node.inputs:
                if tensor in needed:
                    needed[tensor].update(range(lines.of[tensor].rows))
            continue
        if follows.is_view:
            asked = runs(needed[node.output])
        else:
            own_shares = _shares(node.outputs, needed, lines.of, hop)
            shares.update(own_shares)
            asked = own_shares[node.outputs[0]].computed
        for run in asked:
            for tensor in node.inputs:
                if tensor in needed:
                    rows = input_rows(follows, run, lines.of[tensor].rows)
                    needed[tensor].update(range(rows.first, rows.stop))
    (x,) = (tensor for tensor in graph.arguments if tensor in lines.of)
    shares.update(_shares((x,), needed, lines.of, hop))
    return shares


def input_rows(follow: Follow, output: Rows, count: int) -> Rows:
    """Return the rows of an input of `count` rows that some rows of an output read."""
    return reach(follow.window, output).common(Rows(0, count))


def _shares(
    tensors: Iterable[Tensor],
    needed: Mapping[Tensor, set[int]],
    lines: Mapping[Tensor, Timeline],
    hop: int,
) -> dict[Tensor, Share]:
    remembered = {t: _kept(needed[t], lines[t], hop) for t in tensors}
    computed: set[int] = set()
    for tensor, rows in remembered.items():
        line = lines[tensor]
        computed |= needed[tensor].difference(range(rows.first, rows.stop))
        if rows.count:
            computed.update(range(rows.stop, line.steady.stop))
    return {
        t: Share(rows, runs(computed), lines[t].shift(hop), lines[t].turns(hop))
        for t, rows in remembered.items()
    }


def _kept(needed: set[int], line: Timeline, hop: int) -> Rows:
    """Return the rows of a tensor that stay, of which some are needed."""
    steady = line.steady
    old = Rows(steady.first, max(steady.stop - line.shift(hop), steady.first))
    asked = needed.intersection(range(old.first, old.stop))
    return Rows(min(asked), old.stop) if asked else Rows(0, 0)
