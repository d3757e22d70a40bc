"""Count what is written in a function: each piece of work once, however often it runs.

The kinds are those of `work`, with what takes code but hardly time: bounds of loops, arguments of
calls, loops within loops, pointers that several loops move.  How many bytes a compiler makes of
each is not known here: see `measure.code`.
"""

from __future__ import annotations

from collections import Counter

from microtir.dtype import DType
from microtir.tir import ir
from microtir.tir.analysis.work import COPIED_IN_PLACE, WorkCounter, is_computed
from microtir.tir.visitor import walk

_DEEP = 2  # loops around one whose variables find registers


def code_of(function: ir.PrimFunc) -> Counter[str]:
    """Return how often each kind of work is written in a function, without what it calls."""
    counter = _CodeCounter()
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
                self.place(argument.buffer, argument.indices)
            elif not isinstance(argument, ir.BufferView):
                self.expr(argument)

    def loop(self, s: ir.For) -> None:
        depth = len(self.loops)
        self.values[s.var] = None
        match s.start, s.stop:
            case ir.IntImm(first), ir.IntImm(last) if last - first == 1:
                self.depths[s.var] = 0
                self.statement(s.body)
                return
            case ir.IntImm(), ir.IntImm():
                self.add("entry", 0)
            case ir.IntImm(), _:
                self.add("entry_to_some", 0)
            case _:
                self.add("entry_of_some", 0)
        self.expr(s.start)
        self.expr(s.stop)
        self.add("deep", 0, depth > _DEEP)
        copied = _copied(s)
        if copied is not None and not _is_short(s):
            self.add(copied, 0)
        self.depths[s.var] = depth
        self.enter(s, 1.0)
        self.statement(s.body)
        self.loops.pop()

    def access(
        self, kind: str, buffer: ir.Buffer, indices: tuple[ir.Expr, ...], depth: int
    ) -> None:
        before = self.counts["pointer"]
        super().access(kind, buffer, indices, depth)
        if self.counts["pointer"] > before:
            moved = {n for index in indices for n in walk(index) if isinstance(n, ir.Var)}
            self.counts["pointer_by_loops"] += len(moved) - 1

    def place(self, buffer: ir.Buffer, indices: tuple[ir.Expr, ...]) -> None:
        """Count the address of an element that a call is given."""
        for index in indices:
            if any(is_computed(n) for n in walk(index)):
                self.expr(index)
        depth = max(map(self.depth, indices), default=0)
        is_fixed = all(isinstance(index, ir.IntImm) for index in indices)
        if not is_fixed and self.is_new(("place", buffer, *indices), depth):
            self.add("place", 0)

    def converted(self, e: ir.Cast, depth: int) -> None:
        sign = "" if e.dtype.is_signed and e.value.dtype.is_signed else "_unsigned"
        self.add(f"convert_{'to' if e.dtype.is_float else 'from'}_float{sign}", depth)

    def divided_by_constant(self, depth: int) -> None:
        self.add("div_by_constant", depth)


def _is_short(s: ir.For) -> bool:
    """Return whether compilers copy in place: so few bytes that a call would take as long."""
    match s.start, s.stop, s.body:
        case ir.IntImm(first), ir.IntImm(last), ir.Store(buffer):
            return (last - first) * buffer.dtype.bytes <= COPIED_IN_PLACE
        case _:
            return False


def _copied(s: ir.For) -> str | None:
    """Return the kind of a loop that compilers may make a call of memmove or memset."""
    match s.body:
        case ir.Store(_, (*_, last), value) if _moves_by_one(last, s.var):
            match value:
                case ir.Load(_, (*outer, read)) if not any(_reads(i, s.var) for i in outer):
                    if _moves_by_one(read, s.var):
                        return "copies"
                    return None if _reads(read, s.var) else "fills"
                case ir.IntImm() | ir.FloatImm():
                    return "fills"
                case _:
                    return None
        case _:
            return None


def _moves_by_one(index: ir.Expr, var: ir.Var) -> bool:
    """Return whether an index moves to the next element when a loop does."""
    match index:
        case ir.Binary(ir.BinaryOp.ADD, a, b):
            return (a is var and not _reads(b, var)) or (b is var and not _reads(a, var))
        case ir.Binary(ir.BinaryOp.SUB, a, b):
            return a is var and not _reads(b, var)
        case _:
            return index is var


def _reads(index: ir.Expr, var: ir.Var) -> bool:
    return any(n is var for n in walk(index))
