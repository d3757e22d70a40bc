"""Simulations of nests, made once for all nests of the same shape.

Networks repeat their blocks, and a graph is planned with several layouts: the same nests come again
and again.  What they run when, and what that makes of rows, depends on windows and on numbers of
rows alone; what that takes depends on how many bytes these are and on what lives around them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from microtir.graph.ir import Tensor
from microtir.plan.ir import PlannedOperator
from microtir.plan.nest import NEVER, History, Rows, histories, longest_nest, runs_of


@dataclass(frozen=True, slots=True, eq=False)
class NestSimulation:
    """The longest nest of as many of the last operators as all feed the last one.

    It begins with operator `start`; `ran` holds for each of its calls the number of the operator
    that makes it, counted from there, and `known` what happens to each tensor that they read or
    write, in order.
    """

    start: int
    ran: Rows
    known: tuple[History, ...]

    def __len__(self) -> int:
        return len(self.ran)


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """An operator that may be a step of a nest.

    Operators of one `number` have the same windows and numbers of rows; `tensors` are what it reads
    and writes.
    """

    operator: PlannedOperator
    number: int
    tensors: tuple[Tensor, ...]


class NestSimulations:
    """The simulations that have been asked for, and distances between what happens in them."""

    def __init__(self) -> None:
        self._simulations: dict[tuple[object, ...], NestSimulation] = {}
        self._distances: dict[tuple[History, History, int, int], int] = {}
        self._steps: dict[int, _Step] = {}
        self._numbers: dict[tuple[object, ...], int] = {}
        self._taken: dict[tuple[object, ...], tuple[Rows, ...]] = {}

    def of(self, operators: Sequence[PlannedOperator], rows_per_call: int) -> NestSimulation:
        """Return the simulation of the longest nest that ends in the last operator.

        Args:
            operators: streamable ones in graph order.
            rows_per_call: rows of a call.
        """
        key = (rows_per_call, *self._shape(operators))
        result = self._simulations.get(key)
        if result is None:
            result = self._simulations[key] = _simulated(operators, rows_per_call)
        return result

    def _shape(self, operators: Sequence[PlannedOperator]) -> list[object]:
        """Return which operator reads what of which other one, and how many rows there are."""
        numbers: dict[Tensor, int] = {}
        shape: list[object] = []
        for operator in operators:
            step = self._step(operator)
            shape.append(step.number)
            shape += [numbers.setdefault(tensor, len(numbers)) for tensor in step.tensors]
        return shape

    def _step(self, operator: PlannedOperator) -> _Step:
        """Return what the shape of a nest says of one operator, put together once."""
        # An operator is known by its place in memory, which nobody else takes: the step keeps it.
        step = self._steps.get(id(operator))
        if step is None:
            node, candidate = operator.node, operator.candidate
            tensors = (*node.activations, *node.outputs)
            rows = tuple(tensor.type.rows for tensor in tensors)
            key = (candidate.accumulates, candidate.windows, rows)
            number = self._numbers.setdefault(key, len(self._numbers))
            step = self._steps[id(operator)] = _Step(operator, number, tensors)
        return step

    def tensors_of(self, operators: Sequence[PlannedOperator]) -> tuple[Tensor, ...]:
        """Return `tensors_of` of operators that a simulation was asked for."""
        return tuple(dict.fromkeys(chain.from_iterable(self._step(o).tensors for o in operators)))

    def taken(
        self, lives: tuple[object, ...], simulate: Callable[[], tuple[Rows, ...]]
    ) -> tuple[Rows, ...]:
        """Return the bytes that nests take, worked out once for those that live alike.

        Args:
            lives: a simulation, and all that the bytes depend on beside it.
            simulate: works them out.
        """
        if lives not in self._taken:
            self._taken[lives] = simulate()
        return self._taken[lives]

    def distance(self, reader: History, writer: History, reader_row: int, writer_row: int) -> int:
        """Return bytes by which what is read must start behind what is written over it, at least.

        Args:
            reader: of a tensor that dies.
            writer: of another one, in the same nest.
            reader_row: bytes of a row of the one.
            writer_row: bytes of a row of the other.
        """
        key = reader, writer, reader_row, writer_row
        if key not in self._distances:
            self._distances[key] = _distance(*key)
        return self._distances[key]


def tensors_of(operators: Sequence[PlannedOperator]) -> tuple[Tensor, ...]:
    """Return what operators read or write, in the order of `NestSimulation.known`."""
    both = ((*operator.inputs, operator.node.output) for operator in operators)
    return tuple(dict.fromkeys(chain.from_iterable(both)))


def _simulated(operators: Sequence[PlannedOperator], rows_per_call: int) -> NestSimulation:
    start, nest = longest_nest(operators, rows_per_call)
    runs = runs_of(nest)
    members = operators[start:]
    numbers = {member.node: number for number, member in enumerate(members)}
    ran = np.array([numbers[operator.node] for operator in runs.operators])[runs.ran]
    return NestSimulation(start, ran, tuple(histories(runs, tensors_of(members)).values()))


def _distance(reader: History, writer: History, reader_row: int, writer_row: int) -> int:
    oldest, written = reader.oldest, writer.written
    # Both ascend: from the first row that is written to the last one that is read.
    both = slice(int(np.searchsorted(written, 1)), int(np.searchsorted(oldest, NEVER)))
    ends = written[both] * writer_row - oldest[both] * reader_row
    return max(int(ends.max(initial=0)), 0)
