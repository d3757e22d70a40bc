"""Lifetimes of workspace buffers, read off the TIR main."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from microtir.errors import MemoryPlanError
from microtir.tir.ir import Allocate, Buffer, BufferView, For, Invoke, PrimFunc, Scope, Seq, Stmt
from microtir.tir.visitor import walk


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Steps (positions of Invokes in program order, inclusive) at which a buffer must keep."""

    buffer: Buffer
    size: int  # bytes
    first: int
    last: int
    alignment: int = 1  # bytes: the strictest of its element type and of the layers that touch it

    def overlaps(self, other: Lifetime) -> bool:
        """True if both must keep their bytes at some common step."""
        return self.first <= other.last and other.first <= self.last


def lifetimes(
    main: PrimFunc, callees: Mapping[str, PrimFunc] | None = None
) -> tuple[Lifetime, ...]:
    """Return the lifetime of each WORKSPACE buffer of `main`, in order of allocation.

    Args:
        main: as the executor made it.
        callees: the layer functions by name, for the alignments that their parameters ask for.

    A buffer lives from the first to the last Invoke that names it. What a loop touches lives
    through the whole loop, since a later iteration may read what an earlier one wrote.

    Raises:
        MemoryPlanError: a buffer is allocated and never used, or its size is not constant.
    """
    touched: dict[Buffer, list[int]] = {buffer: [] for buffer in _allocated(main.body)}
    _visit(main.body, 0, touched)
    found = []
    for buffer, steps in touched.items():
        if not steps:
            raise MemoryPlanError(
                "workspace buffer is never used", where=f"{main.name}: {buffer.name}"
            )
        alignment = max(buffer.alignment, *_alignments(main, buffer, callees or {}))
        found.append(Lifetime(buffer, size_of(buffer), min(steps), max(steps), alignment))
    return tuple(found)


def lower_bound(lives: tuple[Lifetime, ...]) -> int:
    """Bytes that no placement can go below: the largest sum alive at one step."""
    steps = range(max((life.last for life in lives), default=-1) + 1)
    return max((sum(x.size for x in lives if x.first <= s <= x.last) for s in steps), default=0)


def size_of(buffer: Buffer) -> int:
    """Bytes of a buffer of constant shape.

    Raises:
        MemoryPlanError: an extent is a runtime integer.
    """
    extents = [extent for extent in buffer.shape if isinstance(extent, int)]
    if len(extents) != len(buffer.shape):
        raise MemoryPlanError(
            "a workspace buffer needs a constant shape", where=buffer.name, legal="integer extents"
        )
    return math.prod(extents) * buffer.dtype.bytes


def _alignments(main: PrimFunc, buffer: Buffer, callees: Mapping[str, PrimFunc]) -> Iterator[int]:
    """What the element type of `buffer` and every call that names it need."""
    yield buffer.dtype.bytes
    for node in walk(main):
        if not isinstance(node, Invoke):
            continue
        params = callees[node.function].params if node.function in callees else ()
        for number, arg in enumerate(node.args):
            if isinstance(arg, BufferView) and arg.buffer is buffer:
                yield arg.dtype.bytes
                param = params[number] if params else buffer
                yield param.alignment if isinstance(param, Buffer) else 1


def _allocated(statement: Stmt) -> Iterator[Buffer]:
    match statement:
        case Allocate(buffer, body):
            if buffer.scope is Scope.WORKSPACE:
                yield buffer
            yield from _allocated(body)
        case Seq(statements):
            for inner in statements:
                yield from _allocated(inner)
        case For():
            yield from _allocated(statement.body)
        case _:
            return


def _visit(statement: Stmt, step: int, touched: dict[Buffer, list[int]]) -> int:
    """Record the steps of `statement`, which begins at `step`; return the step after it."""
    match statement:
        case Allocate(_, body):
            return _visit(body, step, touched)
        case Seq(statements):
            for inner in statements:
                step = _visit(inner, step, touched)
            return step
        case For():
            end = _visit(statement.body, step, touched)
            for steps in touched.values():
                if any(step <= s < end for s in steps):
                    steps += [step, end - 1]
            return end
        case Invoke(_, args):
            for arg in args:
                if isinstance(arg, BufferView) and arg.buffer in touched:
                    touched[arg.buffer].append(step)
            return step + 1
        case _:
            raise MemoryPlanError(
                f"main holds a {type(statement).__name__}",
                legal="Allocate, Seq, For and Invoke: computation belongs in layer functions",
            )
