"""A nest of the plan as loops of main, with bounds that follow from the row alone.

The rows that rows [first, stop) of a consumer demand are [needed(first), needed(stop)) of
`plan.ir.RowWindow`: a linear function, clipped to the tensor.  A clip that cannot bind is not
written.
"""

from __future__ import annotations

from collections.abc import Callable

from microtir.plan.ir import Feed, PlannedOperator, Step
from microtir.tir import build
from microtir.tir.ir import Expr, For, IntImm, Let, Stmt, Var

Call = Callable[[PlannedOperator, Expr, Expr], Stmt]
"""Calls an operator for the rows [first, stop)."""


def loops(nest: Step, call: Call) -> Stmt:
    """Return the loop nest that runs a step for all of its rows."""
    return _turns(nest, IntImm(0), IntImm(nest.operator.rows), 0, call)


def _turns(step: Step, start: Expr, stop: Expr, depth: int, call: Call) -> Stmt:
    """Return the loops over rows [start, stop) of a step, one by one or some per call."""
    suffix = _suffix(step, depth)
    first = Var(f"row{suffix}")
    if step.rows_per_call == 1:
        return For(first, start, stop, _rows(step, first, build.add(first, 1), depth, call))
    turn, last = Var(f"turn{suffix}"), Var(f"row{suffix}_stop")
    end = build.add(first, step.rows_per_call)
    whole = isinstance(stop, IntImm) and stop.value % step.rows_per_call == 0 and not depth
    body = _rows(step, first, last, depth, call)
    body = Let(last, end if whole else build.minimum(end, stop), body)
    begin = build.add(start, build.mul(turn, step.rows_per_call))
    turns = build.ceildiv(build.sub(stop, start), step.rows_per_call)
    return For(turn, IntImm(0), turns, Let(first, begin, body))


def _suffix(step: Step, depth: int) -> str:
    """Return what tells the loops of a nest apart: the operator whose rows they count."""
    index = step.operator.node.source.index
    return str(index) if index >= 0 else f"_{depth}"


def _rows(step: Step, first: Expr, stop: Expr, depth: int, call: Call) -> Stmt:
    """Return the calls for rows [first, stop) of a step, after those for what they need."""
    fed = [_feed(feed, first, stop, step.operator.rows, depth, call) for feed in step.feeds]
    return build.seq(*fed, call(step.operator, first, stop))


def _feed(feed: Feed, first: Expr, stop: Expr, rows: int, depth: int, call: Call) -> Stmt:
    """Return the calls for what rows [first, stop) of a consumer need and none made before."""
    producer, window, height = feed.step, feed.window, feed.tensor.type.rows
    if window.is_same_row and rows <= height:
        if producer.feeds:
            return _rows(producer, first, stop, depth, call)
        return call(producer.operator, first, stop)
    beyond = window.offset + window.extent - window.stride
    end = _clipped(stop, window.stride, beyond, (1, rows), height)
    if beyond <= 0 or rows == 1:
        begin = _clipped(first, window.stride, min(beyond, 0), (0, rows - 1), height)
    else:
        # Before row 0 nothing was asked for, whatever the formula says.
        begin = _clipped(first, window.stride, beyond, (1, rows - 1), height)
        begin = build.select(build.eq(first, 0), build.index(0), begin)
    if not producer.feeds:
        return call(producer.operator, begin, end)
    if producer.rows_per_call == 1:
        return _turns(producer, begin, end, depth + 1, call)
    suffix = _suffix(producer, depth + 1)
    done, asked = Var(f"made{suffix}"), Var(f"asked{suffix}")
    return Let(done, begin, Let(asked, end, _turns(producer, done, asked, depth + 1, call)))


def _clipped(y: Expr, stride: int, offset: int, range_: tuple[int, int], height: int) -> Expr:
    """Return the value of y * stride + offset within [0, height], where y is in a range."""
    low, high = range_
    value = build.add(build.mul(y, stride), offset)
    if low * stride + offset < 0:
        value = build.maximum(value, 0)
    if high * stride + offset > height:
        value = build.minimum(value, height)
    return value
