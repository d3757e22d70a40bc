"""The calls of a main, in the order in which a run makes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from microtir.tir import ir
from microtir.tir.analysis.bounds import Bounds
from microtir.tir.analysis.interval import Interval
from microtir.tir.visitor import walk
from microtir.tir.walker import Call, StatementWalker

Event: TypeAlias = tuple[ir.Invoke | ir.Load, tuple[int, ...]]
"""A call with the values of its integer arguments, or a condition that is read."""


def events(s: ir.Stmt, idle_turns: int = 2) -> Iterator[Event]:
    """Yield what main does, in order.

    Both branches of a condition run, one after the other: what either needs must be there.

    Args:
        s: its body, or a part of it.
        idle_turns: turns, at most, of a loop that does the same in each.  By default the second
            finds what the first has left.
    """
    return _Execution(idle_turns).statement(s, Bounds())


def calls(s: ir.Stmt, idle_turns: int = 2) -> Iterator[tuple[ir.Invoke, tuple[int, ...]]]:
    """Yield the calls among the events, with the values of their integer arguments."""
    for event, scalars in events(s, idle_turns):
        if isinstance(event, ir.Invoke):
            yield event, scalars


class _Execution(StatementWalker[Bounds, Event]):
    """Executes loops turn by turn; variables have one value each."""

    def __init__(self, idle_turns: int) -> None:
        self.idle_turns = idle_turns

    def loop(self, s: ir.For, known: Bounds) -> Iterator[Event]:
        turns = range(known.of(s.start).low, known.of(s.stop).high)
        for turn in (
            turns if any(node is s.var for node in walk(s.body)) else turns[: self.idle_turns]
        ):
            known.ranges[s.var] = Interval(turn, turn)
            yield from self.statement(s.body, known)

    def inside_let(self, s: ir.Let, known: Bounds) -> Bounds:
        known.ranges[s.var] = known.of(s.value)
        return known

    def reads(self, items: Sequence[ir.Expr], known: Bounds) -> Iterator[Event]:
        return ((item, ()) for item in items if isinstance(item, ir.Load))

    def call(self, s: Call, known: Bounds) -> Iterator[Event]:
        if isinstance(s, ir.Invoke):
            scalars = (known.of(a) for a in s.args if not isinstance(a, ir.BufferView))
            yield s, tuple(value.low for value in scalars)
