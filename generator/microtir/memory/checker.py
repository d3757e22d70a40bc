"""Independent proof that a placement never overwrites a living byte.

Shares no code and no notion with the planner: it knows nothing of lifetimes.  It executes main
symbolically, byte by byte of the workspace: each byte remembers which buffer wrote it last, a
read demands that every byte of the buffer still belongs to that buffer, and one call may not
write where it reads.  Every view must lie where its elements and its layer need it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from microtir.errors import MemoryPlanError
from microtir.tir.ir import (
    Allocate,
    Buffer,
    BufferView,
    For,
    IntImm,
    Invoke,
    PrimFunc,
    Scope,
    Seq,
    Stmt,
)
from microtir.tir.visitor import buffers_read, buffers_written

_NOBODY = 0


def check(
    main: PrimFunc, placed: PrimFunc, callees: Mapping[str, PrimFunc], workspace_size: int
) -> None:
    """Prove `placed` against `main`, which has the buffers before placement.

    Raises:
        MemoryPlanError: names the call, the buffer and the first byte that is wrong.
    """
    owner: npt.NDArray[np.int32] = np.full(workspace_size, _NOBODY, np.int32)
    numbers: dict[Buffer, int] = {}
    for step, (before, after) in enumerate(
        zip(_calls(main.body), _calls(placed.body), strict=True)
    ):
        if before.function != after.function or len(before.args) != len(after.args):
            raise MemoryPlanError(f"placement changed call {step} of {before.function}")
        _check_call(step, before, after, callees[before.function], owner, numbers)


def _check_call(
    step: int,
    before: Invoke,
    after: Invoke,
    callee: PrimFunc,
    owner: npt.NDArray[np.int32],
    numbers: dict[Buffer, int],
) -> None:
    reads, writes = set(buffers_read(callee.body)), set(buffers_written(callee.body))
    pieces = []
    for arg, view, param in zip(before.args, after.args, callee.params, strict=True):
        if not isinstance(arg, BufferView) or arg.buffer.scope is not Scope.WORKSPACE:
            continue
        assert isinstance(view, BufferView)
        start = view.byte_offset
        stop = start + math.prod(view.shape) * view.dtype.bytes
        where = f"call {step} of {before.function}, buffer {arg.buffer.name}"
        if start < 0 or stop > owner.size:
            raise MemoryPlanError(
                f"bytes {start} to {stop} lie outside the workspace of {owner.size}", where=where
            )
        need = max(view.dtype.bytes, param.alignment if isinstance(param, Buffer) else 1)
        if start % need or view.buffer.alignment % need:
            raise MemoryPlanError(
                f"byte {start} of a block at a multiple of {view.buffer.alignment} is not at a "
                f"multiple of {need}",
                where=where,
            )
        number = numbers.setdefault(arg.buffer, len(numbers) + 1)
        pieces.append((param in reads, param in writes, number, start, stop, where))
    for is_read, _, number, start, stop, where in pieces:
        wrong = np.flatnonzero(owner[start:stop] != number) if is_read else np.empty(0)
        if wrong.size:
            raise MemoryPlanError(
                f"byte {start + int(wrong[0])} is read but another buffer wrote it last",
                where=where,
            )
    for _, is_written, number, start, stop, where in pieces:
        if is_written:
            for _, _, other, other_start, other_stop, _ in pieces:
                if other != number and start < other_stop and other_start < stop:
                    raise MemoryPlanError("it is written over another argument", where=where)
            owner[start:stop] = number


def _calls(statement: Stmt) -> Iterator[Invoke]:
    """Invokes in the order of execution."""
    match statement:
        case Invoke():
            yield statement
        case Seq(statements):
            for inner in statements:
                yield from _calls(inner)
        case Allocate(_, body):
            yield from _calls(body)
        case For(_, IntImm(start), IntImm(stop), body):
            for _ in range(start, stop):
                yield from _calls(body)
        case _:
            raise MemoryPlanError(
                f"the checker cannot execute a {type(statement).__name__} in main"
            )
