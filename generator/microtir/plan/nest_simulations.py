"""What happens in nests, worked out once for those of the same shape.

Networks repeat their blocks, and a graph is planned with several layouts: the same nests come again
and again.  What they run when, and what that makes of rows, depends on windows and on numbers of
rows alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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


class NestSimulations:
    """The simulations that have been asked for, and distances between what happens in them."""

    def __init__(self) -> None:
        self._simulations: dict[tuple[object, ...], NestSimulation] = {}
        self._distances: dict[tuple[History, History, int, int], int] = {}
        self._rows: dict[Tensor, int] = {}

    def of(self, operators: Sequence[PlannedOperator], together: int) -> NestSimulation:
        """Return the simulation of the longest nest that ends in the last operator.

        Args:
            operators: streamable ones in graph order.
            together: rows of a call.
        """
        key = (together, *self._shape(operators))
        if key not in self._simulations:
            self._simulations[key] = _simulated(operators, together)
        return self._simulations[key]

    def _shape(self, operators: Sequence[PlannedOperator]) -> list[object]:
        """Return which operator reads what of which other one, and how many rows there are."""
        numbers: dict[Tensor, int] = {}
        shape: list[object] = []
        for operator in operators:
            node, candidate = operator.node, operator.candidate
            shape += (candidate.accumulates, candidate.windows)
            for tensor in (*node.activations, *node.outputs):
                if tensor not in self._rows:
                    self._rows[tensor] = tensor.type.rows
                shape += (numbers.setdefault(tensor, len(numbers)), self._rows[tensor])
        return shape

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
    return tuple(dict.fromkeys(tensor for tensors in both for tensor in tensors))


def _simulated(operators: Sequence[PlannedOperator], together: int) -> NestSimulation:
    start, nest = longest_nest(operators, together)
    runs = runs_of(nest)
    members = operators[start:]
    numbers = {member.node: number for number, member in enumerate(members)}
    ran = np.array([numbers[operator.node] for operator in runs.operators])[runs.ran]
    return NestSimulation(start, ran, tuple(histories(runs, tensors_of(members)).values()))


def _distance(reader: History, writer: History, reader_row: int, writer_row: int) -> int:
    oldest, made = reader.oldest, writer.made
    # Both ascend: from the first row that is written to the last one that is read.
    both = slice(int(np.searchsorted(made, 1)), int(np.searchsorted(oldest, NEVER)))
    ends = made[both] * writer_row - oldest[both] * reader_row
    return max(int(ends.max(initial=0)), 0)
