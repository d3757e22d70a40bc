"""Loops as readers describe them to the graph: turns, values that go through them, lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from microtir.dtype import DType
from microtir.graph.ir import Tensor

FEW_TURNS = 4
"""Loops of up to so many turns are written out: the code of a loop would take as much."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The results of one turn of a loop.

    Args:
        states: the new values of what goes from turn to turn, in order.
        items: what the turn adds to each list.
        goes_on: whether another turn follows; None if nothing but their number ends them.
    """

    states: tuple[Tensor, ...]
    items: tuple[Tensor, ...] = ()
    goes_on: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop.

    Args:
        first: what goes from turn to turn, before the first one.
        body: given the number of the turn and these values; it may be asked several times, and what
            it emits may be taken back.
        turns: how many there are at most; None if a condition alone ends them.
        begins: whether there is a first turn; None if there is.
        counter: the type of the number of a turn.
        from_end: of each list, whether its first item is put last; none by default.
    """

    first: tuple[Tensor, ...]
    body: Callable[[Tensor, tuple[Tensor, ...]], Turn]
    turns: int | None
    begins: Tensor | None = None
    counter: DType = DType.INT32
    from_end: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class Repeated:
    """The results of a loop: the last values of states, and the lists."""

    states: tuple[Tensor, ...]
    lists: tuple[Tensor, ...]
