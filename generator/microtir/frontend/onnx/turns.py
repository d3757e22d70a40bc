"""Follow a loop turn by turn while compiling, as far as nothing in it depends on the inputs.

A turn is known as the nodes that compute it.  Of its values, those are followed that begin as
constants and change by what is known: counters, and the conditions that are made of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from microtir.graph.ir import Array, Node, Tensor
from microtir.operators import record_of
from microtir.operators.definition import Trait
from microtir.rewrite.reference import evaluate
from microtir.rewrite.reference.evaluate import value_of

MOST_FOLLOWED = 1 << 12
"""Most turns of a loop that is followed turn by turn."""

_MOST_ELEMENTS = 64  # of what is evaluated for one value in a turn

Values: TypeAlias = "Mapping[Tensor, Array]"


@dataclass(frozen=True, slots=True)
class Followed:
    """The facts about a loop whose integers were followed turn by turn.

    Args:
        turns: how many there are, at most if it is open.
        is_open: whether a condition may end it before that depends on the inputs.
        numbers: what integers are in each turn, by their tensor in a turn.
    """

    turns: int
    is_open: bool
    numbers: Mapping[Tensor, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class TurnNodes:
    """A turn of a loop.

    Args:
        nodes: what it computes, in order.
        carried: what each value is before the loop and behind a turn, by its tensor in a turn.
        goes_on: whether another turn follows; None if it always does.
    """

    nodes: tuple[Node, ...]
    carried: Mapping[Tensor, tuple[Tensor, Tensor]]
    goes_on: Tensor | None

    def followed(self, most: int | None) -> Followed | None:
        """Return what is known of the loop; None if nothing that is known ends it.

        Args:
            most: how many turns there may be; None if only the condition ends them.
        """
        values = self._first_values()
        is_open = self.goes_on is not None and self._slice([self.goes_on], values) is None
        condition = None if is_open else self.goes_on
        if condition is None and (most is None or most > MOST_FOLLOWED):
            return None if most is None else Followed(most, is_open, MappingProxyType({}))
        wanted = [self.carried[turn][1] for turn in values]
        nodes = self._slice([*wanted, *([] if condition is None else [condition])], values) or ()
        seen: dict[Tensor, list[int]] = {t: [] for t, x in values.items() if x.dtype.kind in "iu"}
        for number in range(1, MOST_FOLLOWED + 1):
            for turn, numbers in seen.items():
                numbers.append(int(values[turn].reshape(())))
            after = _computed(nodes, values)
            if number == most or (condition is not None and not value_of(condition, after).all()):
                numbers_of = {turn: tuple(numbers) for turn, numbers in seen.items()}
                return Followed(number, is_open, MappingProxyType(numbers_of))
            values = {turn: value_of(self.carried[turn][1], after) for turn in values}
        return None

    def _first_values(self) -> Values:
        """Return what single values begin with that depend on nothing but each other."""
        values = {
            turn: first.data
            for turn, (first, _) in self.carried.items()
            if first.data is not None and first.data.size == 1
        }
        while True:
            remaining = {
                turn: data
                for turn, data in values.items()
                if self._slice([self.carried[turn][1]], values) is not None
            }
            if len(remaining) == len(values):
                return values
            values = remaining

    def _slice(self, wanted: Sequence[Tensor], values: Values) -> tuple[Node, ...] | None:
        """Return the nodes that compute values of known ones; None if others have part in it."""
        makers = {tensor: node for node in self.nodes for tensor in node.outputs}
        open_, needed, size = list(wanted), set[Node](), 0
        while open_:
            tensor = open_.pop()
            if tensor.data is not None or tensor in values:
                continue
            node = makers.get(tensor)
            if node is None or record_of(node.op).has(Trait.CONTROL):
                return None
            if node not in needed:
                needed.add(node)
                size += sum(output.type.elements for output in node.outputs)
                open_ += node.inputs
        if size > _MOST_ELEMENTS * len(wanted):
            return None
        return tuple(node for node in self.nodes if node in needed)


def _computed(nodes: Sequence[Node], values: Values) -> Values:
    """Return all values behind a turn."""
    known = dict(values)
    for node in nodes:
        inputs = [value_of(tensor, known) for tensor in node.inputs]
        known.update(zip(node.outputs, evaluate(node, inputs), strict=True))
    return known
