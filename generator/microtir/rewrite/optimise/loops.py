"""Loops as passes see them: their turns, what goes from one to the next, what each value means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from microtir.graph.ir import Graph, Node, Tensor
from microtir.operators.arithmetic.definition import Add
from microtir.operators.control.definition import Control, EndRepeat, Repeat, turns_of
from microtir.operators.state.definition import Assign


@dataclass(frozen=True, slots=True)
class Carried:
    """A value that goes from turn to turn.

    Args:
        first: what the first turn begins with, outside of the loop.
        turn: the value at the beginning of a turn.
        new: who gives it its new value at the end of a turn.
        last: what it is behind the loop.
    """

    first: Tensor
    turn: Tensor
    new: Node
    last: Tensor


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop with nothing that is run conditionally in it.

    Args:
        start: the number of its Repeat.
        stop: that of its EndRepeat.
        turns: how many there are.
        carried: the values that go from turn to turn.
        producers: who computes each value in a turn.
        begins: the Assigns before it.
    """

    start: int
    stop: int
    turns: int
    carried: tuple[Carried, ...]
    producers: Mapping[Tensor, Node]
    begins: frozenset[Node]

    @property
    def counter(self) -> Carried | None:
        """Return the value that is 0 in the first turn and grows by 1, if there is one."""
        return next((value for value in self.carried if self._counts(value)), None)

    def _counts(self, value: Carried) -> bool:
        if not (value.turn.dtype.is_int and value.turn.type.elements == 1):
            return False
        start, adder = value.first.data, self.producers.get(value.new.inputs[0])
        if start is None or start.any() or not isinstance(value.new.op, Assign):
            return False
        if adder is None or adder.op != Add() or value.turn not in adder.inputs:
            return False
        steps = [t.data for t in adder.inputs if t is not value.turn]
        return len(steps) == 1 and steps[0] is not None and bool((steps[0] == 1).all())


def loops_of(graph: Graph) -> Iterator[Loop]:
    """Yield the loops of a graph that hold no other loop, no branch and no guard."""
    start = -1
    for number, node in enumerate(graph.nodes):
        if isinstance(node.op, Repeat):
            start = number
        elif isinstance(node.op, EndRepeat) and start >= 0:
            loop = _loop(graph, start, number)
            if loop is not None:
                yield loop
            start = -1
        elif isinstance(node.op, Control):
            start = -1


def _loop(graph: Graph, start: int, stop: int) -> Loop | None:
    producers, (repeat, end) = graph.producers(), (graph.nodes[start], graph.nodes[stop])
    inside = {t: node for node in graph.nodes[start + 1 : stop] for t in node.outputs}
    begins = [producers.get(tensor) for tensor in repeat.inputs]
    if not all(node is not None and isinstance(node.op, Assign) for node in begins):
        return None
    carried = tuple(
        Carried(begin.inputs[0], turn, inside[new], last)
        for begin, (turn, new), last in zip(begins, turns_of(end), end.outputs, strict=True)
        if begin is not None and new in inside
    )
    if len(carried) != len(begins):
        return None
    turns, assigned = repeat.attributes(Repeat).turns, frozenset(n for n in begins if n is not None)
    return Loop(start, stop, turns, carried, inside, assigned)
