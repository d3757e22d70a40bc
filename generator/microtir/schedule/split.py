"""Primitives that change the ranges of loops and keep the order of the iterations."""

from __future__ import annotations

from dataclasses import replace

from microtir.errors import ScheduleError
from microtir.schedule.names import UniqueNames
from microtir.schedule.program import Loop, ScheduledProgram, is_parameter
from microtir.schedule.proof import cancelled_difference
from microtir.schedule.tree import copy_loops, find_loop, path_to, replace_stmt, require_serial
from microtir.tir import build, ir
from microtir.tir.visitor import substitute, variables_used, walk


def split(
    program: ScheduledProgram, loop: Loop, factor: int
) -> tuple[ScheduledProgram, Loop, Loop]:
    """Make blocks of `factor` iterations; an If guards the tail that is no whole block.

    Raises:
        ScheduleError: the factor is not positive, or the loop is not serial.
    """
    step = f"split({loop}, {factor})"
    if factor < 1:
        raise ScheduleError(f"the factor {factor} is not positive", where=step, legal="1, 2, ...")
    old = find_loop(program, loop, step)
    require_serial(old, step)
    names = UniqueNames.used_in(program.body)
    outer = Loop.new(loop.stage, f"{loop.name}_outer", names)
    inner = Loop.new(loop.stage, f"{loop.name}_inner", names)
    extent = cancelled_difference(old.stop, old.start)
    value = build.add(old.start, build.add(build.mul(outer.var, factor), inner.var))
    body = substitute(old.body, {old.var: value})
    if not _is_multiple(extent, factor):
        body = ir.If(build.lt(value, old.stop), body)
    block = ir.For(inner.var, build.const(0), build.const(factor), body)
    blocks = ir.For(outer.var, build.const(0), build.ceildiv(extent, factor), block)
    return program.with_body(replace_stmt(program.body, old, blocks), outer, inner), outer, inner


def _is_multiple(extent: ir.Expr, factor: int) -> bool:
    """Return whether every value of `extent` is known to be a multiple of `factor`."""
    match extent:
        case ir.IntImm(value) | ir.Binary(ir.BinaryOp.MUL, _, ir.IntImm(value)):
            return value % factor == 0
        case _:
            return factor == 1


def fuse(program: ScheduledProgram, outer: Loop, inner: Loop) -> tuple[ScheduledProgram, Loop]:
    """Make one loop over the iterations of two perfectly nested ones, in the same order.

    Raises:
        ScheduleError: there is something between the loops, or the inner range depends on the
            outer loop or is no constant.
    """
    step = f"fuse({outer}, {inner})"
    first, second = find_loop(program, outer, step), find_loop(program, inner, step)
    require_serial(first, step)
    require_serial(second, step)
    if first.body is not second:
        raise ScheduleError(
            f"'{inner}' is not the only statement of '{outer}'", where=step,
            legal="an outer loop that contains only the inner loop",
        )  # fmt: skip
    extent = cancelled_difference(second.stop, second.start)
    moves = first.var in variables_used(second.start)
    if moves or not isinstance(extent, ir.IntImm) or extent.value < 1:
        raise ScheduleError(
            f"the number of iterations of '{inner}' is not constant, or its range depends on"
            f" '{outer}'",
            where=step,
        )
    names = UniqueNames.used_in(program.body)
    fused = Loop.new(outer.stage, f"{outer.name}_{inner.name}", names)
    row = build.add(first.start, build.floordiv(fused.var, extent.value))
    column = build.add(second.start, build.floormod(fused.var, extent.value))
    body = substitute(second.body, {first.var: row, second.var: column})
    total = build.mul(cancelled_difference(first.stop, first.start), extent.value)
    loop = ir.For(fused.var, build.const(0), total, body)
    return program.with_body(replace_stmt(program.body, first, loop), fused), fused


def partition(
    program: ScheduledProgram, loop: Loop, at: ir.Expr
) -> tuple[ScheduledProgram, Loop, Loop]:
    """Make two loops one after the other: [start, at) and [at, stop), each cut to the range.

    Raises:
        ScheduleError: `at` is no INT32, or reads something that is not known before the loop.
    """
    step = f"partition({loop})"
    old = find_loop(program, loop, step)
    require_serial(old, step)
    _check_point(program, old, at, step)
    names = UniqueNames.used_in(program.body)
    middle = build.minimum(build.maximum(at, old.start), old.stop)
    first = Loop.new(loop.stage, f"{loop.name}_first", names)
    rest = Loop.new(loop.stage, f"{loop.name}_rest", names)
    copy, copied = copy_loops(old.body, names, dict(program.loops), "_rest")
    low = ir.For(first.var, old.start, middle, substitute(old.body, {old.var: first.var}))
    high = ir.For(rest.var, middle, old.stop, substitute(copy, {old.var: rest.var}))
    body = replace_stmt(program.body, old, build.seq(low, high))
    added = tuple(v for v in variables_used(at) if v not in program.variables and is_parameter(v))
    program = replace(program, variables=(*program.variables, *dict.fromkeys(added)))
    return program.with_body(body, first, rest, *copied), first, rest


def _check_point(program: ScheduledProgram, loop: ir.For, at: ir.Expr, step: str) -> None:
    """Raise ScheduleError if `at` cannot be evaluated in front of the loop."""
    if at.dtype is not ir.DType.INT32:
        raise ScheduleError(f"the point has the type {at.dtype.value}", where=step, legal="INT32")
    around = path_to(program.body, loop)
    known = {node.var for node in around if isinstance(node, ir.For | ir.Let)}
    for node in walk(at):
        if isinstance(node, ir.Load):
            raise ScheduleError(f"the point reads the tensor '{node.buffer.name}'", where=step)
        if isinstance(node, ir.Var) and node not in known and not is_parameter(node):
            raise ScheduleError(f"'{node.name}' is not defined outside the loop", where=step)
