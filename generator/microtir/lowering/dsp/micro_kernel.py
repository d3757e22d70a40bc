"""How the micro-kernels of this folder are described, called and unrolled."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from microtir.config.features import Feature
from microtir.schedule import KernelDescription
from microtir.te import Expr
from microtir.tir import ir


class Unroll(NamedTuple):
    """How far a sum is unrolled: up to `full` steps without a loop, else `turn` steps a turn."""

    full: int
    turn: int


FAST = Unroll(16, 8)
COMPACT = Unroll(4, 4)


def describe(
    name: str,
    about: tuple[str, ...],
    params: tuple[ir.Buffer, ...],
    written: tuple[ir.Buffer, ...],
    body: ir.Stmt,
    template: str,
    values: Mapping[str, object],
    stack_bytes: int,
    needs: Feature = Feature.DSP,
) -> KernelDescription:
    """A micro-kernel that reads all of its parameters but `written`, and writes all of those.

    Args:
        name: says what it is specialised for; equal kernels have equal names.
        about: its comment.
        params: pointers, each spanning what the kernel reaches from it.
        written: those of the parameters that it writes.
        body: the meaning.
        template: of the assembly, below templates/.
        values: what the template is given: finished text, and lists to repeat instructions by.
        stack_bytes: that the assembly pushes.
        needs: what the assembly takes of a CPU.
    """
    given = MappingProxyType(dict(values))
    attrs = MappingProxyType({"about": about, "assembly": given, "needs": needs.value})
    meaning = ir.PrimFunc(name, params, body, attrs=attrs)
    contract = ir.KernelContract(
        reads=tuple(_all_of(p) for p in params if p not in written),
        writes=tuple(_all_of(p) for p in written),
        stack_bytes=stack_bytes,
    )
    return KernelDescription(meaning, contract, template)


def _all_of(buffer: ir.Buffer) -> ir.Region:
    extents = tuple(d for d in buffer.shape if isinstance(d, int))
    return ir.Region(buffer, (ir.IntImm(0),) * len(extents), extents)


def call(kernel: KernelDescription, *args: ir.BufferArgument | Expr) -> ir.KernelCall:
    """A call with arguments in the order of the kernel's parameters."""
    plain = tuple(a.node if isinstance(a, Expr) else a for a in args)
    return ir.KernelCall(kernel.meaning, plain, kernel.contract, kernel.assembly)


def unrolled(steps: int, unroll: Unroll) -> dict[str, str]:
    """How often a step is repeated after the first one: before the loop and in one turn of it.

    The first step sets the sums.  Empty text stands for no repetition, or no loop.
    """
    before = printed_before(steps, unroll)
    return {
        "peeled": str(before - 1) if before > 1 else "",
        "unrolled": str(unroll.turn) if before < steps else "",
    }


def printed_before(steps: int, unroll: Unroll) -> int:
    """Steps in front of the loop; all of them if there is none."""
    return steps if steps <= unroll.full else steps % unroll.turn or unroll.turn


def printed(steps: int, unroll: Unroll) -> int:
    """Steps that are printed, in front of the loop and in it."""
    before = printed_before(steps, unroll)
    return before if before == steps else before + unroll.turn


def turns(steps: int, unroll: Unroll) -> int:
    """How often the loop runs."""
    return (steps - printed_before(steps, unroll)) // unroll.turn


def repeated(turns: int, most: int) -> dict[str, str | bool]:
    """How often a part is printed, and whether that is one turn of a loop over `turns` parts."""
    if turns <= 2 * most:
        return {"repeats": str(turns) if turns else "", "loops": False}
    part = max(n for n in range(1, most + 1) if turns % n == 0)
    return {"repeats": str(part), "loops": True}
