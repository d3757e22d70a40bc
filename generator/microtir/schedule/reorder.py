"""Primitives that change the order of iterations, or allow it to change."""

from __future__ import annotations

from dataclasses import replace

from microtir.errors import ScheduleError
from microtir.schedule.legality import accesses_of, conflict_of_independence, conflict_of_order
from microtir.schedule.program import Loop, ScheduledProgram
from microtir.schedule.tree import facts_at, find_loop, replace_stmt, require_serial
from microtir.tir import build, ir
from microtir.tir.visitor import buffers_read, buffers_written, variables_used, walk

UNROLL_LIMIT = 256


def reorder(
    program: ScheduledProgram, loops: tuple[Loop, ...], *, allow_reassociation: bool
) -> ScheduledProgram:
    """Put loops into the given order, the first one outermost, in their present places.

    Raises:
        ScheduleError: the loops are not perfectly nested, a range depends on a loop that would move
            inside, or an element would be read or written in another order.
    """
    step = f"reorder({', '.join(map(str, loops))})"
    if len({loop.var for loop in loops}) != len(loops) or len(loops) < 2:
        raise ScheduleError("reorder got fewer than two loops, or a loop twice", where=step)
    nodes = [find_loop(program, loop, step) for loop in loops]
    for node in nodes:
        require_serial(node, step)
    band, guards, core = _band(nodes, step)
    places = [n for n, node in enumerate(band) if node in nodes]
    order = list(band)
    for place, node in zip(places, nodes, strict=True):
        order[place] = node
    _check_ranges(order, guards, core, step)
    swapped = [
        (a.var, b.var)
        for n, a in enumerate(band)
        for b in band[n + 1 :]
        if order.index(b) < order.index(a)
    ]
    accesses = accesses_of(band[0], facts_at(program.body, band[0]))
    conflict = conflict_of_order(accesses, swapped, allow_reassociation=allow_reassociation)
    if conflict is not None:
        fix = "pass allow_reassociation=True" if conflict.is_float_reduction else None
        raise ScheduleError(str(conflict), where=step, fix=fix)
    body = core if not guards else ir.If(build.logical_and(*guards), core)
    for node in reversed(order):
        body = replace(node, body=body)
    return program.with_body(replace_stmt(program.body, band[0], body))


def _band(nodes: list[ir.For], step: str) -> tuple[list[ir.For], list[ir.Expr], ir.Stmt]:
    """Return the loops from outermost to innermost, the guards between, and what is inside."""
    outermost = next((n for n in nodes if all(_contains(n, other) for other in nodes)), None)
    if outermost is None:
        raise ScheduleError("no loop contains all the others", where=step)
    band: list[ir.For] = []
    guards: list[ir.Expr] = []
    missing = list(nodes)
    current: ir.Stmt = outermost
    while missing:
        if isinstance(current, ir.For):
            band.append(current)
            missing = [node for node in missing if node is not current]
            current = current.body
        elif isinstance(current, ir.If) and current.otherwise is None:
            guards.append(current.condition)
            current = current.then
        else:
            raise ScheduleError(
                f"'{band[-1].var.name}' contains more than the next loop"
                f" ({_kinds(current)}), so '{missing[0].var.name}' cannot move outside it",
                where=step,
                fix="call cache_write first: it splits the computation into perfectly nested loops",
            )
    return band, guards, current


def _contains(outer: ir.Stmt, inner: ir.Stmt) -> bool:
    return any(node is inner for node in walk(outer))


def _kinds(statement: ir.Stmt) -> str:
    """Name what stands in the way, in a few words."""
    parts = statement.statements if isinstance(statement, ir.Seq) else (statement,)
    return ", ".join(type(part).__name__ for part in parts)


def _check_ranges(order: list[ir.For], guards: list[ir.Expr], core: ir.Stmt, step: str) -> None:
    """Check that ranges and guards have the same values in the new places."""
    outside = {node.var for node in order}
    for node in order:
        for bound in (node.start, node.stop):
            if outside.intersection(variables_used(bound)):
                inner = next(v.name for v in variables_used(bound) if v in outside)
                raise ScheduleError(
                    f"the range of '{node.var.name}' depends on '{inner}', which would move inside",
                    where=step,
                )
        outside.discard(node.var)
    changed = buffers_written(core)
    for value in (*guards, *(bound for node in order for bound in (node.start, node.stop))):
        for buffer in buffers_read(value):
            if buffer in changed:
                raise ScheduleError(
                    f"a bound or condition reads '{buffer.name}', which the loops write", where=step
                )


def unroll(program: ScheduledProgram, loop: Loop, limit: int) -> ScheduledProgram:
    """Mark a loop to be replaced by copies of its body.

    Raises:
        ScheduleError: the range is not constant, or has more than `limit` iterations.
    """
    step = f"unroll({loop})"
    node = find_loop(program, loop, step)
    require_serial(node, step)
    start, stop = build.int_value(node.start), build.int_value(node.stop)
    if start is None or stop is None:
        raise ScheduleError(
            f"the range of '{loop}' is not constant", where=step, fix="split it by a constant first"
        )
    if stop - start > limit:
        raise ScheduleError(
            f"unrolling makes {stop - start} copies", where=step, legal=f"up to {limit} copies",
            fix="split the loop and unroll the inner loop",
        )  # fmt: skip
    return _with_kind(program, node, ir.LoopKind.UNROLLED)


def vectorize(program: ScheduledProgram, loop: Loop) -> ScheduledProgram:
    """Mark a loop whose iterations do not depend on each other.

    Raises:
        ScheduleError: two iterations may touch the same element, one of them storing it.
    """
    step = f"vectorize({loop})"
    node = find_loop(program, loop, step)
    require_serial(node, step)
    accesses = accesses_of(node, facts_at(program.body, node))
    conflict = conflict_of_independence(accesses, node.var)
    if conflict is not None:
        raise ScheduleError(
            str(conflict), where=step, legal="a loop whose iterations are independent"
        )
    return _with_kind(program, node, ir.LoopKind.VECTORIZED)


def _with_kind(program: ScheduledProgram, node: ir.For, kind: ir.LoopKind) -> ScheduledProgram:
    return program.with_body(replace_stmt(program.body, node, replace(node, kind=kind)))
