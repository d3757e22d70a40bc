"""The one walker over statements: each in the order of execution, with what is known where it runs.

Who wants every node of a tree takes `visitor.walk`.  A subclass of the walker says what it knows of
the inside of a loop, of a Let and of a branch, and what it wants of the statements that do
something; all of that is yielded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from microtir.tir import ir
from microtir.tir.visitor import allocations

KnownT = TypeVar("KnownT")
ResultT = TypeVar("ResultT")

Call = ir.Invoke | ir.KernelCall | ir.ExternCall


class StatementWalker(Generic[KnownT, ResultT]):
    """Walks statements; what a method yields is what the walk yields.

    Each method is given what is known where a statement stands.  By default, a body knows what its
    loop, its Let or its branch does, and nothing is yielded.
    """

    def statement(self, s: ir.Stmt, known: KnownT) -> Iterator[ResultT]:
        """Yield what a statement gives, in the order of execution."""
        match s:
            case ir.Seq(statements):
                for inner in statements:
                    yield from self.statement(inner, known)
            case ir.Allocate():
                yield from self.statement(allocations(s)[1], known)
            case ir.For():
                yield from self.reads((s.start, s.stop), known)
                yield from self.loop(s, known)
            case ir.Let():
                yield from self.reads((s.value,), known)
                yield from self.statement(s.body, self.inside_let(s, known))
            case ir.If(condition, then, otherwise):
                yield from self.reads((condition,), known)
                yield from self.branch(condition, then, known, truth=True)
                if otherwise is not None:
                    yield from self.branch(condition, otherwise, known, truth=False)
            case ir.Store():
                yield from self.reads((*s.indices, s.value), known)
                yield from self.store(s, known)
            case _:
                yield from self.call(s, known)

    def loop(self, s: ir.For, known: KnownT) -> Iterator[ResultT]:
        yield from self.statement(s.body, known)

    def inside_let(self, s: ir.Let, known: KnownT) -> KnownT:
        return known

    def branch(
        self, condition: ir.Expr, s: ir.Stmt, known: KnownT, *, truth: bool
    ) -> Iterator[ResultT]:
        """Yield what a statement gives that runs where a condition holds, or does not."""
        yield from self.statement(s, known)

    def reads(self, items: Sequence[ir.Expr], known: KnownT) -> Iterator[ResultT]:
        """Yield what expressions give that a statement works out, other than arguments of calls."""
        return iter(())

    def store(self, s: ir.Store, known: KnownT) -> Iterator[ResultT]:
        return iter(())

    def call(self, s: Call, known: KnownT) -> Iterator[ResultT]:
        return iter(())
