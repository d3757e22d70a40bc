"""Turns the WORKSPACE buffers of main into views of planned blocks; kernels stay as they are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from microtir.config import CompilationConfig
from microtir.config.enums import Placement
from microtir.dtype import DType
from microtir.memory.checker import check
from microtir.memory.lifetimes import Lifetime, alignments, lifetimes, lower_bound, size_of
from microtir.memory.placement import exact_fit, first_fit, guarded_fit, workspace_size
from microtir.memory.pools import Pool, assigned
from microtir.memory.residency import Peak, Steps, kept_at, kept_bytes, peak_of, steps_of
from microtir.memory.solver import optimal_fit
from microtir.memory.stacking import WORK
from microtir.memory.traffic import traffic
from microtir.tir import ir, memory_plan
from microtir.tir.visitor import Rewriter, allocated, allocations, invokes_of


@dataclass(frozen=True, slots=True)
class Ports:
    """Parameters of main that lie in the workspace, too, where inputs may be overwritten.

    `pools` has the numbers of the pools in which one must lie, where not any will do; `results`
    are outputs that lie elsewhere, None if these are not known.  `states` are pairs of parameters
    that have one memory of the caller: what it holds before a run, and after it.
    """

    inputs: Sequence[ir.Buffer] = ()
    outputs: Sequence[ir.Buffer] = ()
    pools: Mapping[ir.Buffer, Sequence[int]] = field(default_factory=dict)
    results: Sequence[ir.Buffer] | None = None
    states: Sequence[tuple[ir.Buffer, ir.Buffer]] = ()
    turns: Sequence[int] = ()


def ports_of(
    main: ir.PrimFunc, inputs: int, turns: Sequence[int], config: CompilationConfig
) -> Ports:
    """Return the parameters of main, in the workspace or not.

    Args:
        main: as the executor made it.
        inputs: how many of them are inputs, the first.
        turns: how many values each of the states has that the last ones are, all before and then
            all after a run.
        config: says who has memory for inputs and outputs.
    """
    buffers = tuple(p for p in main.params if isinstance(p, ir.Buffer))
    states = len(turns)
    last = len(buffers) - 2 * states
    read, written = buffers[:inputs], buffers[inputs:last]
    state_pairs = tuple(zip(buffers[last : last + states], buffers[last + states :], strict=True))
    if not config.pass_config.use_workspace_io:
        return Ports(results=written, states=state_pairs, turns=turns)
    pools = {b: config.input_pools() for b in read} | {b: config.output_pools() for b in written}
    return Ports(read, written, pools, (), state_pairs, turns)


def place(
    main: ir.PrimFunc,
    callees: Mapping[str, ir.PrimFunc],
    pools: Sequence[Pool],
    placement: Placement,
    ports: Ports | None = None,
) -> tuple[ir.PrimFunc, memory_plan.MemoryPlan]:
    """Place the buffers of `main` and have the placement checked.

    Args:
        main: as the executor made it.
        callees: the layer functions by name; the checker asks them what they read and write.
        pools: the memories; a buffer whose elements or layers need a stricter alignment than its
            pool has gets it, and then so does the pool.
        placement: how offsets are found.
        ports: inputs and outputs that lie in the workspace.

    Returns:
        main with one more parameter (UINT8) for each pool that holds anything, then with one for
        each pair of states in their place, and the plan, whose first placements are those of
        `ports`.  These stay parameters, so that the interface keeps its form; the body does not use
        them.

    Raises:
        MemoryPlanError: the independent checker found a living byte overwritten.
        ToolError: the placement is OPTIMAL, and there is no solver.
    """
    ports = ports or Ports()
    lives = lifetimes(main, callees, ports.inputs, ports.outputs)
    spread = _spread(main, callees, pools, placement, lives, ports)
    steps = steps_of(main.body)
    fits = [_fitted(p, mine, placement, steps) for p, mine in zip(pools, spread, strict=True)]
    used = [fit for fit in fits if fit.plan.size]
    blocks = [_block(fit.plan, n, len(pools)) for n, fit in enumerate(fits) if fit in used]
    spots = {b: (n, at) for n, fit in enumerate(used) for b, at in fit.offsets.items()}
    sizes = [fit.plan.size for fit in used]
    kept_in = [_state_block(before, main, callees) for before, _ in ports.states]
    for (before, after), block in zip(ports.states, kept_in, strict=True):
        spots[before] = spots[after] = (len(blocks), 0)
        blocks.append(block)
        sizes.append(size_of(before))
    state_buffers = [buffer for pair in ports.states for buffer in pair]
    placed = relocate(main, blocks, spots, state_buffers)
    starts, ends = state_buffers[::2], state_buffers[1::2]
    check(
        main, placed, callees, sizes,
        {b: spots[b] for b in (*ports.inputs, *starts)},
        {b: spots[b] for b in (*ports.outputs, *ends)}, ports.results,
    )  # fmt: skip
    pools_taken = tuple(fit.plan for fit in fits)
    state = memory_plan.StateLayout.of_blocks(
        [
            memory_plan.KeptBlock(block.alignment, size_of(block), turns)
            for block, turns in zip(kept_in, ports.turns, strict=True)
        ]
    )
    placements = tuple(_placements(lives, fits, steps))
    return placed, memory_plan.MemoryPlan(
        pools_taken, placements, verified=True, state_size=state.size
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Fitted:
    """A pool with its buffers placed."""

    plan: memory_plan.PlannedPool
    offsets: Mapping[ir.Buffer, int]
    peak: Peak


def _fitted(pool: Pool, lives: Sequence[Lifetime], placement: Placement, steps: Steps) -> _Fitted:
    offsets, bound = _fit(lives, pool.alignment, placement)
    alignment, size, canary = pool.taken(lives, workspace_size(lives, offsets))
    peak, bound = peak_of(lives, steps), bound + 2 * canary
    offsets = {buffer: canary + at for buffer, at in offsets.items()}
    return _Fitted(
        memory_plan.PlannedPool(pool.name, size, bound, alignment, peak.step, canary), offsets, peak
    )


def _spread(
    main: ir.PrimFunc,
    callees: Mapping[str, ir.PrimFunc],
    pools: Sequence[Pool],
    placement: Placement,
    lives: Sequence[Lifetime],
    ports: Ports,
) -> Sequence[Sequence[Lifetime]]:
    """Return the buffers of each pool."""
    if len(pools) == 1:
        return [lives]
    moved = traffic(main, callees, [life.buffer for life in lives])
    candidates = {**_pinned(main, callees, pools), **ports.pools}
    fit = guarded_fit if placement is Placement.GUARDED else _tried
    return assigned(lives, pools, moved, candidates, fit)


def _pinned(
    main: ir.PrimFunc, callees: Mapping[str, ir.PrimFunc], pools: Sequence[Pool]
) -> Mapping[ir.Buffer, Sequence[int]]:
    """Return the pools of buffers that the layer that uses them asks for by name."""
    numbers = {pool.name: (number,) for number, pool in enumerate(pools)}
    return {
        arg.buffer: numbers[callees[call.function].pools[param]]
        for call in invokes_of(main)
        if callees[call.function].pools
        for arg, param in zip(call.args, callees[call.function].params, strict=True)
        if isinstance(arg, ir.BufferView)
        and isinstance(param, ir.Buffer)
        and param in callees[call.function].pools
    }


def _tried(lives: Sequence[Lifetime], alignment: int) -> Mapping[ir.Buffer, int]:
    """Return offsets where buffers are only tried in a pool, which is done many times."""
    return first_fit(lives, alignment, WORK // 10)


def _block(pool: memory_plan.PlannedPool, number: int, pools: int) -> ir.Buffer:
    name = "workspace" if pools == 1 else f"workspace_{number}"
    return ir.Buffer(name, (pool.size,), DType.UINT8, ir.Scope.PARAMETER, alignment=pool.alignment)


def _state_block(
    before: ir.Buffer, main: ir.PrimFunc, callees: Mapping[str, ir.PrimFunc]
) -> ir.Buffer:
    """Return the memory of a state, aligned as the layers that use it need it."""
    alignment = max(before.alignment, before.dtype.bytes, alignments(main, callees).get(before, 1))
    return replace(before, scope=ir.Scope.PARAMETER, alignment=alignment)


def _fit(
    lives: Sequence[Lifetime], alignment: int, placement: Placement
) -> tuple[Mapping[ir.Buffer, int], int]:
    """Return offsets, and bytes that no placement of these lifetimes is below."""
    match placement:
        case Placement.GREEDY:
            return first_fit(lives, alignment), lower_bound(lives)
        case Placement.EXACT:
            return exact_fit(lives, alignment), lower_bound(lives)
        case Placement.GUARDED:
            return guarded_fit(lives, alignment), lower_bound(lives)
        case Placement.OPTIMAL:
            return optimal_fit(lives, alignment)


def _placements(
    lives: Sequence[Lifetime], fits: Sequence[_Fitted], steps: Steps
) -> Iterator[memory_plan.BufferPlacement]:
    places = {b: (n, at) for n, fit in enumerate(fits) for b, at in fit.offsets.items()}
    for life in lives:
        pool, offset = places[life.buffer]
        yield memory_plan.BufferPlacement(
            life.buffer.name,
            offset,
            life.size,
            life.first,
            life.last,
            kept_bytes(life, steps),
            kept_at(life, fits[pool].peak.moment),
            pool,
        )


def relocate(
    main: ir.PrimFunc,
    blocks: Sequence[ir.Buffer],
    spots: Mapping[ir.Buffer, tuple[int, int]],
    replaced: Collection[ir.Buffer] = (),
) -> ir.PrimFunc:
    """Return the main with blocks of bytes as more parameters, and buffers as views of them.

    Args:
        main: before placement.
        blocks: what the pools are in TIR.
        spots: of each buffer the number of its block, and a byte of that.
        replaced: parameters that are none any more.
    """
    remaining = [param for param in main.params if param not in replaced]
    body = _Relocation(blocks, spots).stmt(main.body)
    return replace(main, params=(*remaining, *blocks), body=body)


class _Relocation(Rewriter):
    """Puts views of blocks in the place of buffers."""

    def __init__(
        self, blocks: Sequence[ir.Buffer], spots: Mapping[ir.Buffer, tuple[int, int]]
    ) -> None:
        self.blocks = blocks
        self.spots = spots

    def stmt(self, s: ir.Stmt) -> ir.Stmt:
        match s:
            case ir.Allocate():
                buffers, inside = allocations(s)
                remaining = [b for b in buffers if b.scope is not ir.Scope.WORKSPACE]
                return allocated(remaining, self.stmt(inside))
            case ir.Invoke(function, args):
                views = (self.view(a) if isinstance(a, ir.BufferView) else a for a in args)
                return ir.Invoke(function, tuple(views))
            case _:
                return self.stmt_parts(s)

    def view(self, arg: ir.BufferView) -> ir.BufferView:
        if arg.buffer not in self.spots:
            return arg
        block, offset = self.spots[arg.buffer]
        return ir.BufferView(self.blocks[block], arg.shape, arg.dtype, offset + arg.byte_offset)

    def expr(self, e: ir.Expr) -> ir.Expr:
        """Return what a condition reads: a truth value, or a byte that is not 0."""
        if not isinstance(e, ir.Load) or e.buffer not in self.spots:
            return self.expr_parts(e)
        block, offset = self.spots[e.buffer]
        if self.blocks[block].dtype is DType.BOOL:
            return ir.Load(self.blocks[block], e.indices)
        byte = ir.Load(self.blocks[block], (ir.IntImm(offset),))
        return ir.Binary(ir.BinaryOp.NE, byte, ir.IntImm(0, DType.UINT8))
