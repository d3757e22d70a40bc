"""Turns the WORKSPACE buffers of main into views of one planned block; kernels stay as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from microtir.config.enums import Placement
from microtir.ir_module import BufferPlacement, MemoryPlan
from microtir.memory.checker import check
from microtir.memory.lifetimes import Lifetime, lifetimes, lower_bound
from microtir.memory.placement import exact_fit, first_fit, guarded_fit, workspace_size
from microtir.memory.residency import Peak, Steps, kept_at, kept_bytes, peak_of, steps_of
from microtir.memory.solver import optimal_fit
from microtir.tir.dtype import DType
from microtir.tir.ir import (
    Allocate,
    Buffer,
    BufferView,
    For,
    Invoke,
    Let,
    PrimFunc,
    Scope,
    Seq,
    Stmt,
)
from microtir.tir.visitor import allocated, allocations


def place(
    main: PrimFunc,
    callees: Mapping[str, PrimFunc],
    alignment: int,
    placement: Placement,
    inputs: Sequence[Buffer] = (),
    outputs: Sequence[Buffer] = (),
) -> tuple[PrimFunc, MemoryPlan]:
    """Place the buffers of `main` and have the placement checked.

    Args:
        main: as the executor made it.
        callees: the layer functions by name; the checker asks them what they read and write.
        alignment: least one of every buffer and of the block, in bytes, a power of two; a buffer
            whose elements or layers need more gets more, and then so does the block.
        placement: how offsets are found.
        inputs: parameters of main that lie in the workspace, too, and may be overwritten.
        outputs: parameters of main that lie in the workspace, too.

    Returns:
        main with one more parameter `workspace` (UINT8) if it needs any, and the plan, whose first
        placements are those of `inputs` and `outputs`.  These stay parameters, so that the
        interface keeps its form; the body does not use them.

    Raises:
        MemoryPlanError: the independent checker found a living byte overwritten.
        ToolError: the placement is OPTIMAL, and there is no solver.
    """
    lives = lifetimes(main, callees, inputs, outputs)
    offsets, bound = _fit(lives, alignment, placement)
    size = workspace_size(lives, offsets)
    block_alignment = max((alignment, *(life.alignment for life in lives)))
    placed = relocate(main, offsets, size, block_alignment) if size else main
    check(
        main, placed, callees, size,
        {b: offsets[b] for b in inputs}, {b: offsets[b] for b in outputs},
    )  # fmt: skip
    steps = steps_of(main.body)
    peak = peak_of(lives, steps)
    plan = MemoryPlan(
        workspace_size=size,
        lower_bound=bound,
        alignment=block_alignment,
        placements=tuple(_placement(life, offsets, steps, peak) for life in lives),
        verified=True,
        peak_step=peak.step,
    )
    return placed, plan


def _fit(
    lives: Sequence[Lifetime], alignment: int, placement: Placement
) -> tuple[Mapping[Buffer, int], int]:
    """Offsets, and bytes that no placement of these lifetimes is below."""
    match placement:
        case Placement.GREEDY:
            return first_fit(lives, alignment), lower_bound(lives)
        case Placement.EXACT:
            return exact_fit(lives, alignment), lower_bound(lives)
        case Placement.GUARDED:
            return guarded_fit(lives, alignment), lower_bound(lives)
        case Placement.OPTIMAL:
            return optimal_fit(lives, alignment)


def _placement(
    life: Lifetime, offsets: Mapping[Buffer, int], steps: Steps, peak: Peak
) -> BufferPlacement:
    return BufferPlacement(
        life.buffer.name,
        offsets[life.buffer],
        life.size,
        life.first,
        life.last,
        kept_bytes(life, steps),
        kept_at(life, peak.moment),
    )


def relocate(main: PrimFunc, offsets: Mapping[Buffer, int], size: int, alignment: int) -> PrimFunc:
    """Main with each buffer as a view of one parameter `workspace` of `size` bytes."""
    workspace = Buffer("workspace", (size,), DType.UINT8, Scope.PARAMETER, alignment=alignment)

    def view(arg: BufferView) -> BufferView:
        if arg.buffer not in offsets:
            return arg
        offset = offsets[arg.buffer] + arg.byte_offset
        return BufferView(workspace, arg.shape, arg.dtype, offset)

    def visit(statement: Stmt) -> Stmt:
        match statement:
            case Allocate():
                buffers, inside = allocations(statement)
                kept = [b for b in buffers if b.scope is not Scope.WORKSPACE]
                return allocated(kept, visit(inside))
            case Seq(statements):
                return Seq(tuple(visit(s) for s in statements))
            case For() | Let():
                return replace(statement, body=visit(statement.body))
            case Invoke(function, args):
                views = tuple(view(a) if isinstance(a, BufferView) else a for a in args)
                return Invoke(function, views)
            case _:
                return statement

    return replace(main, params=(*main.params, workspace), body=visit(main.body))
