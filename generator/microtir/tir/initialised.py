"""Definite assignment: a LOCAL scalar must be written on every path before it is read.

Arrays are followed less closely: one is taken as written once any store to it was passed.  The
interpreter checks the rest, element by element.
"""

from __future__ import annotations

from collections.abc import Iterator

from microtir.tir import ir
from microtir.tir.visitor import allocations, buffers_read, buffers_written, walk


def uninitialised_reads(func: ir.PrimFunc) -> Iterator[tuple[ir.Buffer, ir.Stmt]]:
    """Yield LOCAL buffers that may be read before they are written, with the statement."""
    problems: list[tuple[ir.Buffer, ir.Stmt]] = []
    _Flow(problems).run(func.body, frozenset())
    yield from problems


class _Flow:
    """Passes the set of buffers that are surely written through the statements in order."""

    def __init__(self, problems: list[tuple[ir.Buffer, ir.Stmt]]) -> None:
        self.problems = problems

    def run(self, s: ir.Stmt, written: frozenset[ir.Buffer]) -> frozenset[ir.Buffer]:
        match s:
            case ir.Seq(statements):
                for statement in statements:
                    written = self.run(statement, written)
                return written
            case ir.Store(buffer, indices, value):
                self.read(s, (*indices, value), written)
                return written | {buffer}
            case ir.For():
                return self.loop(s, written)
            case ir.If(condition, then, otherwise):
                self.read(s, (condition,), written)
                after_then = self.run(then, written)
                after_else = written if otherwise is None else self.run(otherwise, written)
                both = after_then & after_else
                return both | {b for b in after_then | after_else if b.shape}
            case ir.Let(_, value, body):
                self.read(s, (value,), written)
                return self.run(body, written)
            case ir.Allocate():
                buffers, inside = allocations(s)
                return self.run(inside, written.difference(buffers))
            case ir.Invoke():
                return written | set(buffers_written(s))
            case ir.KernelCall(meaning, args):
                used = set(buffers_read(meaning)), set(buffers_written(meaning))
                return self.call(s, meaning.params, args, used, written)
            case ir.ExternCall(function, args):
                used = set(function.reads), set(function.writes)
                return self.call(s, function.params, args, used, written)

    def loop(self, s: ir.For, written: frozenset[ir.Buffer]) -> frozenset[ir.Buffer]:
        self.read(s, (s.start, s.stop), written)
        after = self.run(s.body, written)
        if isinstance(s.start, ir.IntImm) and isinstance(s.stop, ir.IntImm):
            runs = s.start.value < s.stop.value
            return after if runs else written
        return written | {b for b in after if b.shape}

    def call(
        self,
        s: ir.KernelCall | ir.ExternCall,
        params: tuple[ir.Param, ...],
        args: tuple[ir.BufferArgument | ir.Expr, ...],
        used: tuple[set[ir.Buffer], set[ir.Buffer]],
        written: frozenset[ir.Buffer],
    ) -> frozenset[ir.Buffer]:
        """Return the buffers written after a call; `used` are those of reads and of writes."""
        reads, writes = used
        for param, arg in zip(params, args, strict=False):
            if not isinstance(arg, ir.BufferArgument):
                self.read(s, (arg,), written)
                continue
            self.read(s, arg.indices, written)
            # A kernel that also writes the buffer may write it before it reads it.
            if param in reads and param not in writes:
                self.check(arg.buffer, s, written)
        return written | set(buffers_written(s))

    def read(self, s: ir.Stmt, items: tuple[ir.Expr, ...], written: frozenset[ir.Buffer]) -> None:
        for item in items:
            for node in walk(item):
                if isinstance(node, ir.Load):
                    self.check(node.buffer, s, written)

    def check(self, buffer: ir.Buffer, s: ir.Stmt, written: frozenset[ir.Buffer]) -> None:
        if buffer.scope is ir.Scope.LOCAL and buffer not in written:
            self.problems.append((buffer, s))
