"""Limits on memory, checked once a plan is there: what is too large, where, and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from microtir.errors import MemoryPlanError
from microtir.ir_module import BufferPlacement, MemoryPlan
from microtir.tir.ir import Invoke, PrimFunc
from microtir.tir.visitor import walk

_SHOWN = 3  # entries of a list of the largest


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `bytes`, because the option `field` says so; `holder` names what is limited."""

    field: str
    holder: str
    bytes: int


Weights = tuple[str, int, Sequence[str]]
"""A constant array: its name in C, its bytes, and the functions that read it."""


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
        MemoryPlanError: names the layer that needs most and the largest buffers alive in it.
    """
    if plan.workspace_size <= limit.bytes:
        return
    steps = [callees[node.function] for node in walk(main) if isinstance(node, Invoke)]
    alive = [_alive(plan, step) for step in range(len(steps))]
    peak = max(range(len(steps)), key=lambda step: sum(p.size for p in alive[step]))
    largest = sorted(alive[peak], key=lambda p: -p.size)
    buffers = [f"{p.name}: {p.size} bytes from {_layer(steps[p.first_step])}" for p in largest]
    raise MemoryPlanError(
        f"the workspace takes {plan.workspace_size} bytes, "
        f"{plan.workspace_size - limit.bytes} more than {limit.holder} has",
        where=limit.field,
        legal=f"{plan.workspace_size} bytes or more; no placement of these buffers takes less "
        f"than {plan.lower_bound}",
        fix=f"raise the limit, or make smaller what {_layer(steps[peak])} needs at one time: "
        + _listed(buffers),
    )


def check_flash(limit: Limit, weights: Sequence[Weights], code: int) -> None:
    """Refuse constant arrays and code that together are larger than a limit.

    Args:
        limit: what may not be exceeded.
        weights: all constant arrays.
        code: an estimate, in bytes.

    Raises:
        MemoryPlanError: names the largest arrays and the layers that read them.
    """
    arrays = sum(size for _, size, _ in weights)
    total = arrays + code
    if total <= limit.bytes:
        return
    largest = sorted(weights, key=lambda array: -array[1])
    listed = [f"{name}: {size} bytes for {', '.join(users)}" for name, size, users in largest]
    raise MemoryPlanError(
        f"the program takes {total} bytes of flash, "
        f"{total - limit.bytes} more than {limit.holder} has: weights of {arrays} and code of "
        f"about {code}",
        where=limit.field,
        legal=f"{total} bytes or more; weights alone are {arrays}, and a compiler may make less "
        "code than estimated",
        fix="raise the limit, leave room for less code by a larger limit of RAM or stack if there "
        f"is one, or make smaller the largest arrays: {_listed(listed)}",
    )


def check_stack(limit: Limit, frames: Sequence[tuple[str, int]]) -> None:
    """Refuse code whose deepest chain of calls takes more stack than a limit.

    Args:
        limit: what may not be exceeded.
        frames: function and bytes of each call of the chain, the entry first.

    Raises:
        MemoryPlanError: names the calls of the chain with their bytes.
    """
    total = sum(size for _, size in frames)
    if total <= limit.bytes:
        return
    chain = ", ".join(f"{name} {size}" for name, size in frames)
    raise MemoryPlanError(
        f"one call may take {total} bytes of stack, {total - limit.bytes} more than "
        f"{limit.holder} has",
        where=limit.field,
        legal=f"{total} bytes or more, an upper bound; `microtir profile` measures what one "
        "compiler takes",
        fix=f"raise the limit; the deepest calls are {chain}",
    )


def _alive(plan: MemoryPlan, step: int) -> list[BufferPlacement]:
    return [p for p in plan.placements if p.first_step <= step <= p.last_step]


def _layer(function: PrimFunc) -> str:
    origin = function.origin
    return f"{origin.operator} '{origin.node}'" if origin else function.name


def _listed(texts: Sequence[str]) -> str:
    more = len(texts) - _SHOWN
    return "; ".join([*texts[:_SHOWN], *([f"and {more} smaller"] if more > 0 else [])])
