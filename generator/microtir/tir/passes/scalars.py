"""The pass `scalar_arrays`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from microtir.dtype import DType
from microtir.tir import build, ir
from microtir.tir.initialised import uninitialised_reads
from microtir.tir.visitor import Rewriter, allocated, allocations, rewrite_function, walk


@dataclass(frozen=True, slots=True)
class ScalarArrays:
    """Makes the elements of LOCAL arrays variables, where every index is a literal.

    A compiler keeps a variable in a register; an array that it once kept in memory stays there.
    Each comes to life at its first use, one that is stored once is a Let, and what nobody reads is
    not computed.  This is what scalar replacement of aggregates does in LLVM.

    An array stays where a variable could be read before it is written as far as the text tells: a
    copy whose loop may not run, and reads under the condition that it does.
    """

    name: ClassVar[str] = "scalar_arrays"

    def __call__(self, func: ir.PrimFunc) -> ir.PrimFunc:
        elements = _elements(func)
        if not elements:
            return func
        rewritten = rewrite_function(func, _Scalars(elements))
        unwritten = {scalar for scalar, _ in uninitialised_reads(rewritten)}
        if not unwritten:
            return rewritten
        certain = {
            array: promoted
            for array, promoted in elements.items()
            if not any(element.scalar in unwritten for element in promoted.values())
        }
        return rewrite_function(func, _Scalars(certain))


@dataclass(slots=True)
class _Element:
    """An element of an array: how often it is accessed, and what stands for it.

    `is_first` says that a store of it stands right in the body of the array's Allocate.
    """

    loads: int = 0
    stores: int = 0
    is_first: bool = False
    scalar: ir.Buffer | ir.Var | None = None

    def name(self, name: str, dtype: DType) -> None:
        """Decide what stands for it: a Var, a scalar, or nothing if it is never read."""
        if self.loads:
            is_let = self.stores == 1 and self.is_first
            self.scalar = (
                ir.Var(name, dtype) if is_let else ir.Buffer(name, (), dtype, ir.Scope.LOCAL)
            )


Elements = dict[ir.Buffer, dict[tuple[int, ...], _Element]]
"""The elements of the arrays that become scalars, in the order of their first access."""


def _elements(func: ir.PrimFunc) -> Elements:
    elements: Elements = {}
    indexed: set[ir.Buffer] = set()
    for node in walk(func.body):
        if (
            isinstance(node, ir.Allocate)
            and node.buffer.scope is ir.Scope.LOCAL
            and node.buffer.shape
        ):
            elements[node.buffer] = {}
            for s in _statements(allocations(node)[1]):
                place = _literals(s.indices) if isinstance(s, ir.Store) else None
                if isinstance(s, ir.Store) and s.buffer is node.buffer and place is not None:
                    elements[node.buffer].setdefault(place, _Element()).is_first = True
        elif isinstance(node, ir.BufferArgument | ir.BufferView):
            indexed.add(node.buffer)
        elif isinstance(node, ir.Load | ir.Store) and node.buffer in elements:
            place = _literals(node.indices)
            if place is None:
                indexed.add(node.buffer)
                continue
            element = elements[node.buffer].setdefault(place, _Element())
            element.loads += isinstance(node, ir.Load)
            element.stores += isinstance(node, ir.Store)
    chosen = {array: promoted for array, promoted in elements.items() if array not in indexed}
    for array, promoted in chosen.items():
        for number, element in enumerate(promoted.values()):
            element.name(array.name + str(number) * (len(promoted) > 1), array.dtype)
    return chosen


def _literals(indices: tuple[ir.Expr, ...]) -> tuple[int, ...] | None:
    values = tuple([index.value for index in indices if isinstance(index, ir.IntImm)])
    return values if len(values) == len(indices) else None


def _statements(body: ir.Stmt) -> tuple[ir.Stmt, ...]:
    return body.statements if isinstance(body, ir.Seq) else (body,)


class _Scalars(Rewriter):
    def __init__(self, elements: Elements) -> None:
        self.elements = elements

    def of(self, access: ir.Load | ir.Store) -> ir.Buffer | ir.Var | None:
        """Return what stands for the element that an access goes to."""
        place = _literals(access.indices)
        assert place is not None, "arrays with other indices are kept"
        return self.elements[access.buffer][place].scalar

    def expr(self, e: ir.Expr) -> ir.Expr:
        if not isinstance(e, ir.Load) or e.buffer not in self.elements:
            return self.expr_parts(e)
        scalar = self.of(e)
        assert scalar is not None, "it is read"
        return scalar if isinstance(scalar, ir.Var) else ir.Load(scalar, ())

    def stmt(self, s: ir.Stmt) -> ir.Stmt:
        if isinstance(s, ir.Store) and s.buffer in self.elements:
            scalar = self.of(s)
            assert not isinstance(scalar, ir.Var), "its Allocate makes it a Let"
            return build.NOTHING if scalar is None else ir.Store(scalar, (), self.expr(s.value))
        if not isinstance(s, ir.Allocate):
            return self.stmt_parts(s)
        buffers, body = allocations(s)
        arrays = [buffer for buffer in buffers if buffer in self.elements]
        if not arrays:
            return self.stmt_parts(s)
        other_arrays = tuple(buffer for buffer in buffers if buffer not in self.elements)
        return allocated(other_arrays, self.declared(arrays, _statements(body)))

    def declared(self, arrays: list[ir.Buffer], statements: tuple[ir.Stmt, ...]) -> ir.Stmt:
        """Declare every scalar in front of the first statement that needs it."""
        first = self.first_uses(arrays, statements)
        rest: ir.Stmt = build.NOTHING
        for n, s in reversed(list(enumerate(statements))):
            named = self.of(s) if isinstance(s, ir.Store) and s.buffer in arrays else None
            if isinstance(s, ir.Store) and isinstance(named, ir.Var):
                rest = ir.Let(named, self.expr(s.value), rest)
            else:
                rest = build.seq(self.stmt(s), rest)
            for scalar in reversed(first.get(n, ())):
                rest = ir.Allocate(scalar, rest)
        return rest

    def first_uses(
        self, arrays: list[ir.Buffer], statements: tuple[ir.Stmt, ...]
    ) -> dict[int, list[ir.Buffer]]:
        """Return scalars of the arrays by the number of the statement that uses them first."""
        first: dict[ir.Buffer, int] = {}
        for n, s in enumerate(statements):
            for node in walk(s):
                scalar = None
                if isinstance(node, ir.Load | ir.Store) and node.buffer in arrays:
                    scalar = self.of(node)
                if isinstance(scalar, ir.Buffer):
                    first.setdefault(scalar, n)
        scalars_of: dict[int, list[ir.Buffer]] = {}
        for scalar, n in first.items():
            scalars_of.setdefault(n, []).append(scalar)
        return scalars_of
