"""Limits on memory, checked once a plan is there: what is too large, where, and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from microtir.config import CompilationConfig
from microtir.errors import LimitError, Resource
from microtir.module.limits import RAM_BUDGET, Limit, workspace_limits
from microtir.tir.ir import PrimFunc
from microtir.tir.memory_plan import BufferPlacement, MemoryPlan
from microtir.tir.visitor import invokes_of

_SHOWN = 3  # entries of a list of the largest


Weights = tuple[str, int, Sequence[str]]
"""A constant array: its name in C, its bytes, and the functions that read it."""


def check_workspaces(
    config: CompilationConfig, plan: MemoryPlan, main: PrimFunc, callees: Mapping[str, PrimFunc]
) -> None:
    """Refuse a workspace that is larger than a limit of the configuration; see below."""
    for limit in workspace_limits(config):
        check_workspace(limit, plan, main, callees)


def check_workspace(
    limit: Limit, plan: MemoryPlan, main: PrimFunc, callees: Mapping[str, PrimFunc]
) -> None:
    """Refuse a workspace that is larger than a limit.

    Args:
        limit: what may not be exceeded.
        plan: the placement.
        main: the function whose calls the plan's steps count.
        callees: the layer functions by name.

    Raises:
        LimitError: names the layer that needs most and the largest buffers alive in it.
    """
    taken = limit.taken(plan)
    if taken <= limit.bytes:
        return
    placed = [p for p in plan.placements if limit.pool in (None, p.pool)]
    steps = [callees[node.function] for node in invokes_of(main)]
    alive = [_alive(placed, step) for step in range(len(steps))]
    peak = max(range(len(steps)), key=lambda step: sum(p.size for p in alive[step]))
    largest = sorted(alive[peak], key=lambda p: -p.size)
    buffers = [f"{p.name}: {p.size} bytes from {layer_text(steps[p.first_step])}" for p in largest]
    fix = (
        f"raise the limit, or reduce the memory that {layer_text(steps[peak])} needs. The largest "
        "buffers during this layer are "
    )
    if limit.pool is None:
        state = plan.state_size if limit.counts_state else 0
        what = "the workspace and the state take" if state else "the workspace takes"
        bound = plan.lower_bound + state
    else:
        what, bound = "arrays that fit in no other pool take", plan.pools[limit.pool].lower_bound
        fix = f"{_room(plan, limit.pool)}; {fix}"
    raise LimitError(
        f"{what} {taken} bytes, {taken - limit.bytes} more than {limit.holder} has",
        where=limit.field,
        legal=f"a limit of {taken} bytes or more; no placement of these buffers needs less than "
        f"{bound}",
        fix=fix + listed(buffers),
        resource=Resource.WORKSPACE if limit.field == RAM_BUDGET else Resource.POOL,
        taken=taken,
        allowed=limit.bytes,
        least=bound,
        pool=limit.pool or 0,
    )


def _room(plan: MemoryPlan, full: int) -> str:
    """Return what the other pools hold."""
    others = [f"{p.size} bytes of '{p.name}'" for n, p in enumerate(plan.pools) if n != full]
    return f"{', '.join(others)} are in use"


@dataclass(frozen=True, slots=True)
class Code:
    """Bytes of machine code: by estimate, and what they are at least and at most in truth."""

    bytes: int
    least: int
    most: int

    @property
    def is_known(self) -> bool:
        """Return whether a compiler made it."""
        return self.least == self.most


def check_flash(limit: int, weights: Sequence[Weights], code: Code) -> None:
    """Refuse constant arrays and code that together are larger than the budget.

    Args:
        limit: bytes of the budget.
        weights: all constant arrays.
        code: everything else that lies in flash.

    Raises:
        LimitError: names the largest arrays and the layers that read them.
    """
    arrays = sum(size for _, size, _ in weights)
    total = arrays + code.bytes
    if total <= limit:
        return
    largest = sorted(weights, key=lambda array: -array[1])
    texts = [f"{name}: {size} bytes for {', '.join(users)}" for name, size, users in largest]
    about = "" if code.is_known else "about "
    raise LimitError(
        f"even the smallest program takes {about}{total} bytes of flash, {total - limit} more than "
        f"the budget. The weights take {arrays} bytes, and the code {about}{code.bytes} bytes",
        where="budget.flash",
        legal=f"a budget of {total} bytes or more, {_certainty(arrays, code)}",
        fix=f"raise the budget, or reduce the largest arrays of weights: {listed(texts)}",
        resource=Resource.FLASH,
        taken=total,
        allowed=limit,
    )


def _certainty(arrays: int, code: Code) -> str:
    """Return how far one may trust what is said of a program's flash."""
    if code.is_known:
        return "measured with the board's compiler and -O2"
    return (
        f"by an estimate. With GCC -O2 the program may take {arrays + code.least} to "
        f"{arrays + code.most} bytes; add --board BOARD to measure it with the board's compiler"
    )


def check_stack(limit: int, frames: Sequence[tuple[str, int]]) -> None:
    """Refuse code whose deepest chain of calls takes more stack than a limit.

    Args:
        limit: bytes of the budget.
        frames: function and bytes of each call of the chain, the entry first.

    Raises:
        LimitError: names the calls of the chain with their bytes.
    """
    total = sum(size for _, size in frames)
    if total <= limit:
        return
    chain = ", ".join(f"{name} {size}" for name, size in frames)
    raise LimitError(
        f"one run may take {total} bytes of stack, {total - limit} more than the budget has",
        where="budget.stack",
        legal=f"a budget of {total} bytes or more. This is an upper bound; `microtir profile` "
        "measures the stack with one compiler",
        fix=f"raise the limit. The deepest chain of calls, with bytes, is {chain}",
        resource=Resource.STACK,
        taken=total,
        allowed=limit,
    )


def _alive(placed: Sequence[BufferPlacement], step: int) -> list[BufferPlacement]:
    return [p for p in placed if p.first_step <= step <= p.last_step]


def layer_text(function: PrimFunc) -> str:
    """Return the operator of the model that a function computes, as diagnostics name it."""
    origin = function.origin
    return f"{origin.operator} '{origin.node}'" if origin else function.name


def listed(texts: Sequence[str]) -> str:
    """Return the first few, the largest, and how many more there are."""
    more = len(texts) - _SHOWN
    return "; ".join([*texts[:_SHOWN], *([f"and {more} smaller"] if more > 0 else [])])
