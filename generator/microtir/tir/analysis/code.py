"""Count what is written in a function: each piece of work once, however often it runs.

The kinds are those of `work`, with what takes code but hardly time: bounds of loops, arguments of
calls, loops within loops, pointers that several loops move.  How many bytes a compiler makes of
each is not known here: see `measure.code`.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

import numpy as np

from microtir.dtype import DType
from microtir.tir import ir
from microtir.tir.analysis.terms import collect
from microtir.tir.analysis.work import COPIED_IN_PLACE, WorkCounter
from microtir.tir.visitor import walk

_DEEP = 2  # loops around one whose variables find registers


Arguments: TypeAlias = tuple[tuple[ir.Var, tuple[int, ...]], ...]
"""Values of parameters, one for each call of a function: those that every call states."""


def code_of(function: ir.PrimFunc, arguments: Arguments = ()) -> Counter[str]:
    """Return how often each kind of work is written in a function, without what it calls.

    Compilers leave out what no call needs: loops of one iteration, and shifts of the other sign.
    """
    counter = _CodeCounter()
    counter.values.update((var, np.array(values)) for var, values in arguments)
    counter.statement(function.body)
    values = (n for n in walk(function.body) if isinstance(n, ir.Cast | ir.Binary))
    if any(value.dtype is DType.FLOAT64 for value in values):
        counter.add("double", 0)
    return Counter({kind: round(times) for kind, times in counter.counts.items()})


class _CodeCounter(WorkCounter):
    """Counts each piece of work once where it stands."""

    def add(self, kind: str, depth: int, times: float = 1.0) -> None:
        del depth
        self.counts[kind] += min(times, 1.0)

    def statement(self, s: ir.Stmt) -> None:
        if not isinstance(s, ir.KernelCall | ir.Invoke):
            super().statement(s)
            return
        for argument in s.args:
            self.add("argument", 0)
            if isinstance(argument, ir.BufferArgument):
                self.computed(argument.indices)
            elif not isinstance(argument, ir.BufferView):
                self.expr(argument)

    def loop(self, s: ir.For) -> None:
        depth, turns = len(self.loops), self.turns(s)
        self.values[s.var] = None
        if turns == 1:
            self.depths[s.var] = 0
            self.statement(s.body)
            return
        self.add("entry", 0)
        self.expr(s.start)
        self.expr(s.stop)
        self.add("deep", 0, depth > _DEEP)
        self.copied(s, turns)
        self.depths[s.var] = depth
        self.enter(s, 1.0)
        self.statement(s.body)
        self.loops.pop()

    def turns(self, s: ir.For) -> int:
        """Return how often a loop runs; 0 if that is not constant."""
        start, stop = self.value(s.start), self.value(s.stop)
        if start is None or stop is None:
            return 0
        trips = set(np.ravel(np.subtract(stop, start)).tolist())
        return int(trips.pop()) if len(trips) == 1 else 0

    def copied(self, s: ir.For, turns: int) -> None:
        """Count a loop that compilers may make a call of memmove or memset."""
        match s.body:
            case ir.Store(buffer, (*_, last), value) if _moves_by_one(last, s.var):
                if 0 < turns * buffer.dtype.bytes <= COPIED_IN_PLACE:
                    return
                is_read = any(n is s.var for n in walk(value))
                if isinstance(value, ir.Load) and _moves_by_one(value.indices[-1], s.var):
                    self.add("copies", 0)
                elif isinstance(value, ir.Load | ir.IntImm | ir.FloatImm) and not is_read:
                    self.add("fills", 0)

    def access(
        self, kind: str, buffer: ir.Buffer, indices: tuple[ir.Expr, ...], depth: int
    ) -> None:
        before = self.counts["pointer"]
        super().access(kind, buffer, indices, depth)
        if self.counts["pointer"] > before:
            moved = {n for index in indices for n in walk(index) if isinstance(n, ir.Var)}
            self.counts["pointer_by_loops"] += len(moved) - 1

    def converted(self, e: ir.Cast, depth: int) -> None:
        sign = "" if e.dtype.is_signed and e.value.dtype.is_signed else "_unsigned"
        self.add(f"convert_{'to' if e.dtype.is_float else 'from'}_float{sign}", depth)

    def divided_by_constant(self, depth: int) -> None:
        self.add("div_by_constant", depth)


def _moves_by_one(index: ir.Expr, var: ir.Var) -> bool:
    """Return whether an index moves to the next element when a loop does."""
    return collect(index).factors.get(var) == 1
