"""Describes, calls and unrolls micro-kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from microtir.config import Feature
from microtir.schedule import KernelDescription
from microtir.te import Expr
from microtir.tir import function, ir


class Unroll(NamedTuple):
    """The unrolling of a sum: up to `full` steps without a loop, else `turn` steps a turn.

    A kernel without a loop is for one number of steps; the one with the loop is for any.
    """

    full: int
    turn: int  # a power of two
    single_loads: bool = False  # words are loaded one by one: fewer cycles, more instructions

    def is_straight(self, steps: int) -> bool:
        """Return whether such a sum has no loop."""
        return steps <= self.full

    def of_pairs(self) -> Unroll:
        """Return the same where two steps are taken at a time."""
        return Unroll(self.full // 2, self.turn // 2)


FAST, FAST_SINGLE_LOADS = (Unroll(32, 16, single) for single in (False, True))
COMPACT, COMPACT_SINGLE_LOADS = (Unroll(0, 16, single) for single in (False, True))


class Sizes:
    """Numbers that a kernel is given as arguments, behind its pointers, and their values here."""

    def __init__(self) -> None:
        self.values: dict[ir.Var, int] = {}
        self.relations: list[Expr] = []

    def number(self, name: str, value: int, low: int, high: int) -> ir.Var:
        """Return a parameter in [low, high]; usable as an extent."""
        assert low <= value <= high, "refusal() was asked"
        var = ir.Var(name, low=low, high=high)
        self.values[var] = value
        return var

    def hold(self, relation: Expr) -> None:
        """Make a relation between numbers a precondition."""
        self.relations.append(relation)


def describe(
    name: str,
    about: tuple[str, ...],
    params: tuple[ir.Buffer, ...],
    written: tuple[ir.Buffer, ...],
    body: ir.Stmt,
    template: str | None,
    values: Mapping[str, object],
    stack_bytes: int,
    needs: Feature = Feature.DSP,
    sizes: Sizes | None = None,
    scalars: tuple[ir.Var, ...] = (),
    form: function.NativeForm = function.NativeForm.ASSEMBLY,
) -> KernelDescription:
    """Describe a micro-kernel that reads all parameters but `written`, and writes all of those.

    Args:
        name: says what it is specialised for; equal kernels have equal names.
        about: its comment.
        params: pointers, each spanning what the kernel reaches from it.
        written: those of the parameters that it writes.
        body: the meaning.
        template: of the native body, below templates/; None leaves the kernel to the compiler.
        values: what the template is given: finished text, and lists to repeat instructions by.
        stack_bytes: of the native body and of what it calls.
        needs: what the native body takes of a CPU.
        sizes: its last parameters, and what this call gives them.
        scalars: parameters between those, numbers that are known where the kernel runs.
        form: of the native body.
    """
    frozen = MappingProxyType(dict(values))
    native = function.NativeBody(form, needs, frozen) if template is not None else None
    sizes = sizes or Sizes()
    numbers = sizes.values
    kernel = function.MicroKernel(about, native=native)
    meaning = ir.PrimFunc(name, (*params, *scalars, *numbers), body, kernel=kernel)
    contract = ir.KernelContract(
        reads=tuple(all_of(p, numbers) for p in params if p not in written),
        writes=tuple(all_of(p, numbers) for p in written),
        stack_bytes=stack_bytes,
        preconditions=tuple(relation.node for relation in sizes.relations),
    )
    return KernelDescription(meaning, contract, template, tuple(numbers.values()))


def reading(kernel: KernelDescription, *buffers: ir.Buffer) -> KernelDescription:
    """Return a micro-kernel that reads some of what it writes."""
    reads = *kernel.contract.reads, *map(all_of, buffers)
    return replace(kernel, contract=replace(kernel.contract, reads=reads))


def all_of(buffer: ir.Buffer, numbers: Mapping[ir.Var, int] = MappingProxyType({})) -> ir.Region:
    """Return all that a parameter of a micro-kernel spans."""
    extents = tuple(d if isinstance(d, int) else numbers[d] for d in buffer.shape)
    return ir.Region(buffer, (ir.IntImm(0),) * len(extents), extents)


def call(kernel: KernelDescription, *args: ir.BufferArgument | Expr) -> ir.KernelCall:
    """Return a call with arguments in the order of the kernel's parameters, without its sizes."""
    plain = tuple(a.node if isinstance(a, Expr) else a for a in args)
    sizes = tuple(ir.IntImm(size) for size in kernel.sizes)
    return ir.KernelCall(kernel.meaning, (*plain, *sizes), kernel.contract, kernel.assembly)


def unrolled(steps: int, unroll: Unroll, step_bytes: int) -> dict[str, str | bool]:
    """Return how a template repeats a step after the first one, which sets the sums.

    Either as often as there are steps, or in a loop that is entered where what is left of the
    steps are whole turns.  Empty text stands for what there is none of.

    Args:
        steps: of a sum.
        unroll: how far.
        step_bytes: of the instructions of a step.
    """
    if unroll.is_straight(steps):
        rest = steps - 1
        return {
            "straight": str(rest) if rest else "",
            "turn": "",
            "single_loads": unroll.single_loads,
        }
    return {
        "straight": "",
        "turn": str(unroll.turn),
        "most_left": str(unroll.turn - 1),
        "step_bytes": str(step_bytes),
        "single_loads": unroll.single_loads,
    }


def turns(steps: int, unroll: Unroll) -> int:
    """Return how often the loop runs."""
    return 0 if unroll.is_straight(steps) else -(-(steps - 1) // unroll.turn)


def repeated(turns: int, most: int, straight: int | None = None) -> dict[str, str | bool]:
    """Return how often a part is printed, and whether that is a turn of a loop over `turns`.

    Args:
        turns: of the loop.
        most: parts that one turn may have.
        straight: the most turns that are printed without a loop; None: twice `most`.
    """
    if turns <= (2 * most if straight is None else straight):
        return {"repeats": str(turns) if turns else "", "loops": False}
    part = max(n for n in range(1, most + 1) if turns % n == 0)
    return {"repeats": str(part), "loops": True}
