"""Nests: how a group of operators runs row by row, and which rows that makes and keeps.

Demand drives a nest.  Before a step computes row y it asks each operator that feeds it for the
rows up to the end of its window, of which earlier rows have asked for the most.  A tensor with
several consumers is made at the demand of the one that runs furthest ahead (its leader); the
others find their rows there.  That they do is not argued but executed, on row numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from microtir.graph.ir import Tensor
from microtir.operators.common.rows import RowWindow
from microtir.plan.ir import Feed, PlannedOperator, Step

Rows = npt.NDArray[np.int64]
"""A row number per run."""

NEVER = np.iinfo(np.int64).max


def streamable(operator: PlannedOperator) -> bool:
    """Return whether an operator can be a step of a nest.

    Windows of several images do not slide into each other, so a batch runs row by row only where
    every row stands for itself.
    """
    node = operator.node
    if not operator.candidate.takes_row_range or len(node.outputs) != 1 or not operator.inputs:
        return False
    single = all(t.type.rows == t.shape[1] for t in (*operator.inputs, node.output) if _is_image(t))
    return single or all(operator.window(t).is_same_row for t in operator.inputs)


def _is_image(tensor: Tensor) -> bool:
    return len(tensor.shape) == 4


def nest_of(operators: Sequence[PlannedOperator], rows_per_call: int = 1) -> Step | None:
    """Return the nest whose step is the last operator, or None if not all the others feed it.

    Args:
        operators: streamable ones in graph order.
        rows_per_call: rows of a call.
    """
    start, nest = longest_nest(operators, rows_per_call)
    return nest if start == 0 else None


def longest_nest(operators: Sequence[PlannedOperator], rows_per_call: int = 1) -> tuple[int, Step]:
    """Return nest of as many of the last operators as all feed the last one, and where it begins.

    Args:
        operators: streamable ones in graph order.
        rows_per_call: rows of a call.
    """
    leaders = _leaders(operators)
    start = len(operators) - 1 - len(leaders)
    made_for: dict[int, list[int]] = {}
    for producer in sorted(leaders):
        made_for.setdefault(leaders[producer], []).append(producer)
    steps: dict[int, Step] = {}
    for number in range(start, len(operators)):
        operator = operators[number]
        fed = [(operators[p].node.output, steps[p]) for p in made_for.get(number, ())]
        feeds = tuple(Feed(tensor, operator.window(tensor), step) for tensor, step in fed)
        steps[number] = Step(operator, feeds, rows_per_call)
    return start, steps[len(operators) - 1]


def _leaders(operators: Sequence[PlannedOperator]) -> Mapping[int, int]:
    """Return consumer at whose demand each operator runs, by number, from the last but one on down.

    It ends before the first operator that feeds nobody.
    """
    consumers: dict[Tensor, list[int]] = {}
    for number, operator in enumerate(operators):
        for tensor in operator.inputs:
            consumers.setdefault(tensor, []).append(number)
    last = len(operators) - 1
    demand: dict[int, Rows] = {last: np.arange(1, operators[last].rows + 1)}
    leaders: dict[int, int] = {}
    for producer in range(last - 1, -1, -1):
        tensor = operators[producer].node.output
        asked = [
            (_needed(operators[c].window(tensor), demand[c], tensor.type.rows), c)
            for c in consumers.get(tensor, ())
        ]
        if not asked:
            break
        demand[producer], leaders[producer] = asked[0]
        if len(asked) > 1:
            # At equal demand the first consumer in graph order runs first and asks first.
            leaders[producer] = max(asked, key=lambda pair: int(pair[0].sum()))[1]
            demand[producer] = np.maximum.reduce([rows for rows, _ in asked])
    return leaders


def _needed(window: RowWindow, rows: Rows, height: int) -> Rows:
    """Return `RowWindow.needed` of several rows, which ascend."""
    ends = (rows - 1) * window.stride + (window.offset + window.extent)
    needed: Rows = np.minimum(np.maximum(ends, 0), height)
    return needed if rows[0] else np.where(rows > 0, needed, 0)


@dataclass(frozen=True, slots=True)
class Runs:
    """The calls of a nest in order: number n computes rows [first[n], stop[n]) of a step.

    That is operators[ran[n]].
    """

    operators: tuple[PlannedOperator, ...]
    ran: Rows
    first: Rows
    stop: Rows

    def __len__(self) -> int:
        return len(self.ran)


def runs_of(nest: Step) -> Runs:
    """Return every call that a nest makes, in order.

    A step that nothing feeds computes all rows that are asked for in one call.
    """
    rows = nest.operator.rows
    block = _block(nest, np.append(np.arange(0, rows, nest.rows_per_call), rows))
    calls = list(_calls(block, block.ends[:-1]))
    ran, first, stop = (np.zeros(int(block.ends[-1]), np.int64) for _ in range(3))
    for number, (_, at, begin, end) in enumerate(calls):
        ran[at], first[at], stop[at] = number, begin, end
    return Runs(tuple(operator for operator, *_ in calls), ran, first, stop)


@dataclass(frozen=True, slots=True)
class _Block:
    """The calls that each turn of a step makes: those that it asks for, then its own.

    Turn t computes rows [bounds[t], bounds[t + 1]).  Before it `ends[t]` calls are made where the
    step's turns are all there is, and its n-th feed has made `asked[n][t]` turns, or rows where
    nothing feeds it; within the turn `before[n][t]` calls come before those of the feed.
    """

    step: Step
    bounds: Rows
    ends: Rows
    asked: Sequence[Rows]
    before: Sequence[Rows]
    feeds: Sequence[_Block | None]


def _block(step: Step, bounds: Rows) -> _Block:
    count = np.zeros(len(bounds) - 1, np.int64)
    asked, before = [], []
    feeds: list[_Block | None] = []
    for feed in step.feeds:
        needed = _needed(feed.window, bounds, feed.tensor.type.rows)
        before.append(count)
        if feed.step.feeds:
            inner, needed = _turns(needed, feed.step.rows_per_call)
            producer = _block(feed.step, inner)
            feeds.append(producer)
            count = count + producer.ends[needed[1:]] - producer.ends[needed[:-1]]
        else:
            feeds.append(None)
            count = count + (needed[1:] > needed[:-1])
        asked.append(needed)
    ends = np.append(0, np.cumsum(count + 1))
    return _Block(step, bounds, ends, asked, before, feeds)


def _turns(needed: Rows, rows_per_call: int) -> tuple[Rows, Rows]:
    """Return bounds of the turns in which so many rows are made, and how many turns there are then.

    Args:
        needed: rows that must exist, which ascend from 0.
        rows_per_call: rows of a turn; the last one for each number makes what is left.
    """
    counts = -(-np.diff(needed) // rows_per_call)
    totals = np.append(0, np.cumsum(counts))
    within = np.arange(totals[-1]) - np.repeat(totals[:-1], counts)
    return np.append(np.repeat(needed[:-1], counts) + within * rows_per_call, needed[-1]), totals


def _calls(block: _Block, starts: Rows) -> Iterator[tuple[PlannedOperator, Rows, Rows, Rows]]:
    """Yield for each step its operator, its calls, their first row and the one behind.

    Args:
        block: whose first turns run.
        starts: the number of the first call of each of them.
    """
    count = len(starts)
    for feed, asked, before, inner in zip(
        block.step.feeds, block.asked, block.before, block.feeds, strict=True
    ):
        first, stop = asked[:count], asked[1 : count + 1]
        begins = starts + before[:count]
        if inner is None:
            some = first < stop
            yield feed.step.operator, begins[some], first[some], stop[some]
        else:
            shift = begins - inner.ends[first]
            yield from _calls(inner, np.repeat(shift, stop - first) + inner.ends[: asked[count]])
    own = starts + np.diff(block.ends[: count + 1]) - 1
    yield block.step.operator, own, block.bounds[:count], block.bounds[1 : count + 1]


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """The history of a tensor of so many `rows` while a nest runs, per call.

    `made` counts the rows that exist after the call, `oldest` is the first row that this call or
    a later one reads (NEVER if none does); `alive` says whether it holds a row that is read or has
    just been written, `missing` that one was read before it existed.  `span` is the most rows of
    a call that makes some, and `height` the slots that a ring needs: no row is overwritten before
    it was read for the last time.
    """

    rows: int
    written: Rows
    oldest: Rows
    alive: npt.NDArray[np.bool_]
    missing: bool
    span: int
    height: int

    @property
    def read(self) -> Rows:
        """Return the rows that neither a call nor a later one reads, per call."""
        return np.minimum(self.oldest, self.rows)

    @property
    def is_complete(self) -> bool:
        """Return whether the nest makes all rows in the end."""
        return int(self.written[-1]) == self.rows


def histories(runs: Runs, tensors: Sequence[Tensor]) -> Mapping[Tensor, History]:
    """Return history of each of `tensors`.

    One that no run makes has all its rows from the start.
    """
    shape = len(tensors), len(runs)
    written, wanted, reads = (
        np.zeros(shape, np.int64),
        np.zeros(shape, np.int64),
        np.full(shape, NEVER),
    )
    spans = [1] * len(tensors)
    numbers = {tensor: number for number, tensor in enumerate(tensors)}
    unmade = set(tensors)
    for number, operator in enumerate(runs.operators):
        at = np.flatnonzero(runs.ran == number)
        if not len(at):
            continue  # nobody asks for its rows
        first, stop = runs.first[at], runs.stop[at]
        output = operator.node.output
        if output in numbers:
            written[numbers[output], at] = stop
            spans[numbers[output]] = int((stop - first).max())
            unmade.discard(output)
        for tensor in operator.inputs:
            if tensor in numbers:
                row, height, window = numbers[tensor], tensor.type.rows, operator.window(tensor)
                starts = np.minimum(np.maximum(first * window.stride + window.offset, 0), height)
                reads[row, at] = np.minimum(reads[row, at], starts)
                wanted[row, at] = _needed(window, stop, height)
    for tensor in unmade:
        written[numbers[tensor]] = tensor.type.rows
    np.maximum.accumulate(written, axis=1, out=written)
    oldest = np.minimum.accumulate(reads[:, ::-1], axis=1)[:, ::-1]
    newest = np.maximum(written - 1, 0)
    live = written.copy()
    live[:, :-1] -= np.minimum(oldest[:, 1:], newest[:, :-1])
    live[:, -1] -= newest[:, -1]
    heights = np.maximum(live.max(axis=1), spans)
    earlier = np.zeros_like(written)
    earlier[:, 1:] = written[:, :-1]
    alive = (oldest < written) | (written > earlier)
    missing: npt.NDArray[np.bool_] = np.any(wanted > written, axis=1)
    return {
        t: History(
            t.type.rows,
            written[n],
            oldest[n],
            alive[n],
            bool(missing[n]),
            spans[n],
            int(heights[n]),
        )
        for t, n in numbers.items()
    }
