"""A nest of the plan as loops of main, with bounds that follow from the row alone.

The rows that row y of a consumer demands are [needed(y), needed(y + 1)) of `plan.ir.RowWindow`:
a linear function of y, clipped to the tensor.  A clip that cannot bind is not written.
"""

from __future__ import annotations

from collections.abc import Callable

from microtir.plan.ir import Feed, PlannedOperator, Step
from microtir.tir import build
from microtir.tir.ir import Expr, For, IntImm, Stmt, Var

Call = Callable[[PlannedOperator, Expr, Expr], Stmt]
"""Calls an operator for the rows [first, stop)."""


def loops(nest: Step, call: Call) -> Stmt:
    """The loop nest that runs a step for all of its rows."""
    y, rows = Var("y"), nest.operator.rows
    return For(y, IntImm(0), IntImm(rows), _row(nest, y, 1, call))


def _row(step: Step, y: Var, depth: int, call: Call) -> Stmt:
    """Row y of a step: first what it needs, then the row itself."""
    fed = [_feed(feed, y, step.operator.rows, depth, call) for feed in step.feeds]
    return build.seq(*fed, call(step.operator, y, build.add(y, 1)))


def _feed(feed: Feed, y: Var, rows: int, depth: int, call: Call) -> Stmt:
    producer, window, height = feed.step, feed.window, feed.tensor.type.rows
    if window.is_same_row and rows <= height:
        if producer.feeds:
            return _row(producer, y, depth, call)
        return call(producer.operator, y, build.add(y, 1))
    end = window.offset + window.extent
    begin = end - window.stride  # where row y - 1 ends
    stop = _clipped(y, window.stride, end, (0, rows - 1), height)
    if begin <= 0 or rows == 1:
        start = _clipped(y, window.stride, min(begin, 0), (0, rows - 1), height)
    else:
        # Before row 0 nothing was asked for, whatever the formula says.
        start = _clipped(y, window.stride, begin, (1, rows - 1), height)
        start = build.select(build.eq(y, 0), build.index(0), start)
    if not producer.feeds:
        return call(producer.operator, start, stop)
    row = Var(f"y{depth}")
    return For(row, start, stop, _row(producer, row, depth + 1, call))


def _clipped(y: Var, stride: int, offset: int, range_: tuple[int, int], height: int) -> Expr:
    """The value of y * stride + offset within [0, height], where y is in a range."""
    low, high = range_
    value = build.add(build.mul(y, stride), offset)
    if low * stride + offset < 0:
        value = build.maximum(value, 0)
    if high * stride + offset > height:
        value = build.minimum(value, height)
    return value
