"""Which outputs may take the place of an input: distance 0, by the order of a function's loops.

Elsewhere any write of a call may come before any of its reads.  Where a function is one nest of
loops that writes each element after it has read the same element of an input, and no element
again, its output may begin where the input does, or below: what is overwritten has been read.
"""

from __future__ import annotations

from collections.abc import Sequence

from microtir.tir.ir import Buffer, Expr, For, IntImm, Let, Load, PrimFunc, Stmt, Store, Var
from microtir.tir.visitor import walk

Pair = tuple[Buffer, Buffer]
"""Parameters of a function: an input, and the output that may take its place."""


def in_place(function: PrimFunc) -> frozenset[Pair]:
    """Return the pairs of a function; none if it is anything but one nest of loops."""
    loops: list[Var] = []
    read: list[Expr] = []
    statement: Stmt = function.body
    while not isinstance(statement, Store):
        match statement:
            case For(var, start, stop, body):
                read += (start, stop)
                loops.append(var)
                statement = body
            case Let(_, value, body):
                read.append(value)
                statement = body
            case _:
                return frozenset()
    if not _ascends(statement.indices, loops):
        return frozenset()
    loads = [n for e in (*read, statement.value) for n in walk(e) if isinstance(n, Load)]
    output = statement.buffer
    params = [p for p in function.params if isinstance(p, Buffer) and p is not output]
    return frozenset(
        (x, output)
        for x in params
        if (x.shape, x.dtype) == (output.shape, output.dtype)
        and all(load.indices == statement.indices for load in loads if load.buffer is x)
    )


def _ascends(indices: Sequence[Expr], loops: Sequence[Var]) -> bool:
    """Whether the loops visit each element at most once, in the order in which they lie."""
    return [i for i in indices if not isinstance(i, IntImm)] == list(loops)
