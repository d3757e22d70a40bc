"""The pass `scalar_arrays`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from microtir.tir import build
from microtir.tir.dtype import DType
from microtir.tir.ir import (
    Allocate,
    Buffer,
    BufferArgument,
    BufferView,
    Expr,
    IntImm,
    Let,
    Load,
    PrimFunc,
    Scope,
    Seq,
    Stmt,
    Store,
    Var,
)
from microtir.tir.visitor import Rewriter, allocated, allocations, rewrite_function, walk


@dataclass(frozen=True, slots=True)
class ScalarArrays:
    """Makes the elements of LOCAL arrays variables, where every index is a literal.

    A compiler keeps a variable in a register; an array that it once kept in memory stays there.
    Each comes to life at its first use, one that is stored once is a Let, and what nobody reads is
    not computed.  This is what scalar replacement of aggregates does in LLVM.
    """

    name: ClassVar[str] = "scalar_arrays"

    def __call__(self, func: PrimFunc) -> PrimFunc:
        elements = _elements(func)
        return rewrite_function(func, _Scalars(elements)) if elements else func


@dataclass(slots=True)
class _Element:
    """An element of an array: how often it is accessed, and what stands for it.

    `is_first` says that a store of it stands right in the body of the array's Allocate.
    """

    loads: int = 0
    stores: int = 0
    is_first: bool = False
    scalar: Buffer | Var | None = None

    def name(self, name: str, dtype: DType) -> None:
        """Decide what stands for it: a Var, a scalar, or nothing if it is never read."""
        if self.loads:
            is_let = self.stores == 1 and self.is_first
            self.scalar = Var(name, dtype) if is_let else Buffer(name, (), dtype, Scope.LOCAL)


Elements = dict[Buffer, dict[tuple[int, ...], _Element]]
"""The elements of the arrays that become scalars, in the order of their first access."""


def _elements(func: PrimFunc) -> Elements:
    elements: Elements = {}
    indexed: set[Buffer] = set()
    for node in walk(func.body):
        if isinstance(node, Allocate) and node.buffer.scope is Scope.LOCAL and node.buffer.shape:
            elements[node.buffer] = {}
            for s in _statements(allocations(node)[1]):
                place = _literals(s.indices) if isinstance(s, Store) else None
                if isinstance(s, Store) and s.buffer is node.buffer and place is not None:
                    elements[node.buffer].setdefault(place, _Element()).is_first = True
        elif isinstance(node, BufferArgument | BufferView):
            indexed.add(node.buffer)
        elif isinstance(node, Load | Store) and node.buffer in elements:
            place = _literals(node.indices)
            if place is None:
                indexed.add(node.buffer)
                continue
            element = elements[node.buffer].setdefault(place, _Element())
            element.loads += isinstance(node, Load)
            element.stores += isinstance(node, Store)
    chosen = {array: promoted for array, promoted in elements.items() if array not in indexed}
    for array, promoted in chosen.items():
        for number, element in enumerate(promoted.values()):
            element.name(array.name + str(number) * (len(promoted) > 1), array.dtype)
    return chosen


def _literals(indices: tuple[Expr, ...]) -> tuple[int, ...] | None:
    values = tuple([index.value for index in indices if isinstance(index, IntImm)])
    return values if len(values) == len(indices) else None


def _statements(body: Stmt) -> tuple[Stmt, ...]:
    return body.statements if isinstance(body, Seq) else (body,)


class _Scalars(Rewriter):
    def __init__(self, elements: Elements) -> None:
        self.elements = elements

    def of(self, access: Load | Store) -> Buffer | Var | None:
        """Return what stands for the element that an access goes to."""
        place = _literals(access.indices)
        assert place is not None, "arrays with other indices are kept"
        return self.elements[access.buffer][place].scalar

    def expr(self, e: Expr) -> Expr:
        if not isinstance(e, Load) or e.buffer not in self.elements:
            return self.expr_parts(e)
        scalar = self.of(e)
        assert scalar is not None, "it is read"
        return scalar if isinstance(scalar, Var) else Load(scalar, ())

    def stmt(self, s: Stmt) -> Stmt:
        if isinstance(s, Store) and s.buffer in self.elements:
            scalar = self.of(s)
            assert not isinstance(scalar, Var), "its Allocate makes it a Let"
            return build.NOTHING if scalar is None else Store(scalar, (), self.expr(s.value))
        if not isinstance(s, Allocate):
            return self.stmt_parts(s)
        buffers, body = allocations(s)
        arrays = [buffer for buffer in buffers if buffer in self.elements]
        if not arrays:
            return self.stmt_parts(s)
        other_arrays = tuple(buffer for buffer in buffers if buffer not in self.elements)
        return allocated(other_arrays, self.declared(arrays, _statements(body)))

    def declared(self, arrays: list[Buffer], statements: tuple[Stmt, ...]) -> Stmt:
        """Declare every scalar in front of the first statement that needs it."""
        first = self.first_uses(arrays, statements)
        rest: Stmt = build.NOTHING
        for n, s in reversed(list(enumerate(statements))):
            named = self.of(s) if isinstance(s, Store) and s.buffer in arrays else None
            if isinstance(s, Store) and isinstance(named, Var):
                rest = Let(named, self.expr(s.value), rest)
            else:
                rest = build.seq(self.stmt(s), rest)
            for scalar in reversed(first.get(n, ())):
                rest = Allocate(scalar, rest)
        return rest

    def first_uses(
        self, arrays: list[Buffer], statements: tuple[Stmt, ...]
    ) -> dict[int, list[Buffer]]:
        """Return scalars of the arrays by the number of the statement that uses them first."""
        first: dict[Buffer, int] = {}
        for n, s in enumerate(statements):
            for node in walk(s):
                scalar = None
                if isinstance(node, Load | Store) and node.buffer in arrays:
                    scalar = self.of(node)
                if isinstance(scalar, Buffer):
                    first.setdefault(scalar, n)
        scalars_of: dict[int, list[Buffer]] = {}
        for scalar, n in first.items():
            scalars_of.setdefault(n, []).append(scalar)
        return scalars_of
