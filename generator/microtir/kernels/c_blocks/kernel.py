"""How the register blocks of this folder are described."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from microtir import te
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.statements import each, load, seq, store
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType
from microtir.tir.function import MicroKernel


def portable(
    name: str,
    about: str,
    params: tuple[ir.Buffer, ...],
    written: ir.Buffer,
    body: ir.Stmt,
    *,
    noinline: bool = True,
) -> KernelDescription:
    """A micro-kernel that is printed as C for every CPU.

    Args:
        name: says what it is specialised for; equal kernels have equal names.
        about: its comment.
        params: pointers, each spanning what the kernel reaches from it.
        written: the parameter that it writes, all of it; the others are read.
        body: the meaning.
        noinline: it stays a function of its own in C: variables of the layers that call it would
            compete for registers.
    """
    kernel = MicroKernel((about,), noinline=noinline)
    meaning = ir.PrimFunc(name, params, body, kernel=kernel)
    reads = tuple(_all_of(p) for p in params if p is not written)
    return KernelDescription(meaning, ir.KernelContract(reads, (_all_of(written),)))


def _all_of(buffer: ir.Buffer) -> ir.Region:
    extents = tuple(d for d in buffer.shape if isinstance(d, int))
    return ir.Region(buffer, (ir.IntImm(0),) * len(extents), extents)


def unrolled(name: str, count: int, turn: int, body: Callable[[te.Expr, int], ir.Stmt]) -> ir.Stmt:
    """`body` for [0, count), `turn` of them in each turn of a loop and the rest behind it.

    It is given the number of the turn and the number within the turn (for the rest, that of the
    last whole turn and numbers that go on), so that indices can end in a constant.
    """
    turns = count // turn
    if turns == 0:
        return seq(*(body(te.as_expr(0, DType.INT32), i) for i in range(count)))
    whole = each(name, turns, lambda n: seq(*(body(n, i) for i in range(turn))))
    last = te.as_expr(turns - 1, DType.INT32)
    return seq(whole, *(body(last, turn + i) for i in range(count % turn)))


def accumulators(count: int, dtype: DType) -> list[ir.Buffer]:
    """Sums, each a variable of its own: an array would invite the compiler to keep it in memory."""
    names = ["sum"] if count == 1 else [f"sum{n}" for n in range(count)]
    return [ir.Buffer(name, (), dtype, ir.Scope.LOCAL) for name in names]


def started(sums: Sequence[ir.Buffer], starts: Sequence[te.Expr], body: ir.Stmt) -> ir.Stmt:
    """`body` with the sums in scope, each with the value that it starts from."""
    for total, start in zip(reversed(sums), reversed(starts), strict=True):
        body = ir.Allocate(total, seq(store(total, (), start), body))
    return body


def accumulate(total: ir.Buffer, value: te.Expr) -> ir.Stmt:
    """Adds a value to a sum."""
    return store(total, (), load(total) + value)


@made_once
def copy(size: int, dtype: DType, turn: int = 1) -> KernelDescription:
    """Moves `size` elements, `turn` of them at a time; parameters: from, to."""
    source, target = ir.Buffer("source", (size,), dtype), ir.Buffer("target", (size,), dtype)

    def element(i: te.Expr, k: int) -> ir.Stmt:
        return store(target, (i * turn + k,), load(source, i * turn + k))

    return portable(
        f"copy_{dtype.value}_{size}" + f"_by{turn}" * (turn > 1),
        f"Copies {size} elements",
        (source, target),
        target,
        unrolled("i", size, turn, element),
        noinline=False,
    )
