"""Nests: how a group of operators runs row by row, and which rows that makes and keeps.

Demand drives a nest.  Before a step computes row y it asks each operator that feeds it for the
rows up to the end of its window, of which earlier rows have asked for the most.  A tensor with
several consumers is made at the demand of the one that runs furthest ahead (its leader); the
others find their rows there.  That they do is not argued but executed, on row numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from microtir.graph.ir import Node, Tensor
from microtir.plan.ir import Feed, PlannedOperator, RowWindow, Step

Rows = npt.NDArray[np.int64]
"""A row number per run."""

NEVER = np.iinfo(np.int64).max


def streamable(operator: PlannedOperator) -> bool:
    """Whether an operator can be a step of a nest.

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


def nest_of(operators: Sequence[PlannedOperator]) -> Step | None:
    """The nest whose step is the last operator, or None if not all the others feed it.

    Args:
        operators: streamable ones in graph order.
    """
    start, nest = longest_nest(operators)
    return nest if start == 0 else None


def longest_nest(operators: Sequence[PlannedOperator]) -> tuple[int, Step]:
    """The nest of as many of the last operators as all feed the last one, and where it begins.

    Args:
        operators: streamable ones in graph order.
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
        steps[number] = Step(operator, feeds)
    return start, steps[len(operators) - 1]


def _leaders(operators: Sequence[PlannedOperator]) -> Mapping[int, int]:
    """The consumer at whose demand each operator runs, by number, from the last but one on down.

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
        # At equal demand the first consumer in graph order runs first and asks first.
        leaders[producer] = max(asked, key=lambda pair: int(pair[0].sum()))[1]
        demand[producer] = np.maximum.reduce([rows for rows, _ in asked])
    return leaders


def _needed(window: RowWindow, rows: Rows, height: int) -> Rows:
    """`RowWindow.needed` of several rows."""
    ends = (rows - 1) * window.stride + window.offset + window.extent
    return np.where(rows > 0, np.clip(ends, 0, height), 0)


@dataclass(frozen=True, slots=True)
class Run:
    """One call: rows [first, stop) of an operator."""

    operator: PlannedOperator
    first: int
    stop: int


def runs_of(nest: Step) -> tuple[Run, ...]:
    """Every call that a nest makes, in order.

    A step that nothing feeds computes all rows that are asked for in one call.
    """
    runs: list[Run] = []
    for y in range(nest.operator.rows):
        _run_row(nest, y, runs.append)
    return tuple(runs)


def _run_row(step: Step, y: int, emit: Callable[[Run], None]) -> None:
    for feed in step.feeds:
        height, producer = feed.tensor.type.rows, feed.step
        first, stop = feed.window.needed(y, height), feed.window.needed(y + 1, height)
        if producer.feeds:
            for row in range(first, stop):
                _run_row(producer, row, emit)
        elif first < stop:
            emit(Run(producer.operator, first, stop))
    emit(Run(step.operator, y, y + 1))


@dataclass(frozen=True, slots=True)
class History:
    """What happens to a tensor while a nest runs, per run.

    `made` counts the rows that exist after the run, `oldest` is the first row that this run or a
    later one reads (NEVER if none does), `after` the same for later runs alone; `missing` says
    that a row was read before it existed.
    """

    tensor: Tensor
    made: Rows
    oldest: Rows
    after: Rows
    span: int
    missing: bool

    @property
    def height(self) -> int:
        """Slots that a ring needs: no row is overwritten before it was read for the last time."""
        kept = self.made - np.minimum(self.after, np.maximum(self.made - 1, 0))
        return max(self.span, int(kept.max(initial=0)))

    @property
    def alive(self) -> npt.NDArray[np.bool_]:
        """Per run, whether the tensor holds a row that is read or has just been written."""
        written = self.made > np.append(0, self.made[:-1])
        return written | (self.oldest < self.made)

    @property
    def is_complete(self) -> bool:
        """Whether the nest makes all rows in the end."""
        return int(self.made[-1]) == self.tensor.type.rows


def histories(runs: Sequence[Run], tensors: Sequence[Tensor]) -> Mapping[Tensor, History]:
    """The history of each of `tensors`; one that no run makes has all its rows from the start."""
    operators: dict[Node, PlannedOperator] = {}
    numbers: dict[Node, list[int]] = {}
    for number, run in enumerate(runs):
        operators[run.operator.node] = run.operator
        numbers.setdefault(run.operator.node, []).append(number)
    first = np.array([run.first for run in runs], np.int64)
    stop = np.array([run.stop for run in runs], np.int64)
    calls = [
        _Calls(operator, frozenset(operator.inputs), at, first[at], stop[at])
        for node, operator in operators.items()
        for at in (np.array(numbers[node]),)
    ]
    return {tensor: _history(len(runs), calls, tensor) for tensor in tensors}


@dataclass(frozen=True, slots=True)
class _Calls:
    """All runs of one operator: their numbers and row ranges."""

    operator: PlannedOperator
    inputs: frozenset[Tensor]
    at: Rows
    first: Rows
    stop: Rows


def _history(runs: int, calls: Sequence[_Calls], tensor: Tensor) -> History:
    height, span = tensor.type.rows, 1
    made: Rows = np.zeros(runs, np.int64)
    reads: Rows = np.full(runs, NEVER)
    wanted: Rows = np.zeros(runs, np.int64)
    for c in calls:
        if c.operator.node.output is tensor:
            made[c.at] = c.stop
            span = int((c.stop - c.first).max())
        elif tensor in c.inputs:
            window = c.operator.window(tensor)
            starts = np.clip(c.first * window.stride + window.offset, 0, height)
            reads[c.at] = np.minimum(reads[c.at], starts)
            wanted[c.at] = _needed(window, c.stop, height)
    made = np.maximum.accumulate(made)
    if not made.any():
        made = np.full(runs, height)
    oldest: Rows = np.minimum.accumulate(reads[::-1])[::-1]
    after = np.append(oldest[1:], NEVER)
    return History(tensor, made, oldest, after, span, bool((wanted > made).any()))
