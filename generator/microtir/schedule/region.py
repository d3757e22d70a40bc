"""The part of a buffer that a statement reads, as a box that moves with the loops around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from microtir.errors import ScheduleError
from microtir.schedule.proof import constant_difference
from microtir.tir import build, ir
from microtir.tir.visitor import Replacement, substitute, variables_used, walk, walk_statements

Range: TypeAlias = tuple[ir.Expr, ir.Expr]  # first and last value of a variable
Inner: TypeAlias = Mapping[ir.Var, "Range | None"]  # None: a value that is not bounded


@dataclass(frozen=True, slots=True)
class IndexBox:
    """Elements ``start .. start + extent`` per axis; the starts are known before the statement."""

    start: tuple[ir.Expr, ...]
    extent: tuple[int, ...]


def region_read(body: ir.Stmt, statement: ir.Stmt, buffer: ir.Buffer, step: str) -> IndexBox:
    """Return the smallest box found to hold every element that a part of `body` loads.

    An axis that is indexed in a way that cannot be bounded is taken as a whole.

    Raises:
        ScheduleError: the elements are not known, or an axis cannot be bounded and has no fixed
            extent.
    """
    lets = _Lets(body)
    inner = _inner_ranges(statement, lets)
    loads = [
        lets.resolve(node)
        for node in walk(statement)
        if isinstance(node, ir.Load) and node.buffer is buffer
    ]
    starts, extents = [], []
    for axis, dim in enumerate(buffer.shape):
        bounds = [_bounds(load.indices[axis], inner) for load in loads if isinstance(load, ir.Load)]
        box = _hull([b for b in bounds if b is not None]) if None not in bounds else None
        if box is None or (isinstance(dim, int) and box[1] >= dim):
            if isinstance(dim, ir.Var):
                raise ScheduleError(
                    f"axis {axis} of '{buffer.name}' has extent '{dim.name}', and the part that is"
                    " read here could not be bounded",
                    where=step,
                )
            box = build.const(0), dim
        starts.append(box[0])
        extents.append(box[1])
    for node in walk(statement):
        if isinstance(node, ir.BufferArgument | ir.BufferView) and node.buffer is buffer:
            raise ScheduleError(
                f"a micro-kernel reads '{buffer.name}', so its elements are not known", where=step
            )
    return IndexBox(tuple(starts), tuple(extents))


class _Lets:
    """Values of the named integers of a function, as far as they do not rest on memory."""

    def __init__(self, body: ir.Stmt) -> None:
        self.values: dict[ir.Param, Replacement] = {}
        for node in walk_statements(body):
            if isinstance(node, ir.Let) and node.var.dtype is ir.DType.INT32:
                value = self.resolve(node.value)
                if not any(isinstance(part, ir.Load) for part in walk(value)):
                    self.values[node.var] = value

    def resolve(self, e: ir.Expr) -> ir.Expr:
        """Return the expression in terms of loop variables and parameters."""
        return substitute(e, self.values)


def _inner_ranges(statement: ir.Stmt, lets: _Lets) -> dict[ir.Var, Range | None]:
    """Return the first and last value of every variable that is defined inside a statement."""
    ranges: dict[ir.Var, Range | None] = {}
    for node in walk_statements(statement):
        if isinstance(node, ir.For):
            ranges[node.var] = _tightest(lets.resolve(node.start), lets.resolve(node.stop))
        elif isinstance(node, ir.Let):
            ranges[node.var] = None  # what is left of it after resolving is not known before
    return ranges


def _tightest(start: ir.Expr, stop: ir.Expr) -> Range:
    """Return the first and last value of a range, with a constant distance if there are such.

    Every argument of a maximum is a bound from below, every one of a minimum a bound from above.
    """
    best: tuple[int, Range] | None = None
    lows, stops = _arguments(start, ir.BinaryOp.MAX), _arguments(stop, ir.BinaryOp.MIN)
    for low in lows:
        for high in stops:
            extent = constant_difference(high, low)
            if extent is not None and (best is None or extent < best[0]):
                best = extent, (low, build.sub(high, 1))
    return best[1] if best else (lows[-1], build.sub(stops[-1], 1))


def _arguments(bound: ir.Expr, op: ir.BinaryOp) -> list[ir.Expr]:
    if isinstance(bound, ir.Binary) and bound.op is op:
        return [*_arguments(bound.a, op), *_arguments(bound.b, op)]
    return [bound]


def _bounds(index: ir.Expr, inner: Inner) -> Range | None:
    low, high = _extreme(index, inner, lowest=True), _extreme(index, inner, lowest=False)
    return None if low is None or high is None else (low, high)


def _extreme(e: ir.Expr, inner: Inner, *, lowest: bool) -> ir.Expr | None:
    """Return the lowest or highest `e` over the inner variables; None if it is not monotone."""
    if not any(var in inner for var in variables_used(e)):
        return None if any(isinstance(node, ir.Load) for node in walk(e)) else e
    match e:
        case ir.Var():
            ends = inner[e]
            return None if ends is None else _extreme(ends[not lowest], inner, lowest=lowest)
        case ir.Binary(op, a, b) if op in _MONOTONE:
            first = _extreme(a, inner, lowest=lowest)
            second = _extreme(b, inner, lowest=lowest != (op is ir.BinaryOp.SUB))
            if first is None or second is None:
                return None
            return _MONOTONE[op](first, second)
        case ir.Binary(ir.BinaryOp.MUL | ir.BinaryOp.FLOORDIV as op, a, ir.IntImm(factor)):
            if factor <= 0 and op is ir.BinaryOp.FLOORDIV:
                return None
            value = _extreme(a, inner, lowest=lowest == (factor > 0))
            if value is None:
                return None
            return (build.mul if op is ir.BinaryOp.MUL else build.floordiv)(value, factor)
        case _:
            return None


_MONOTONE: Mapping[ir.BinaryOp, Callable[[ir.Expr, ir.Expr], ir.Expr]] = {
    ir.BinaryOp.ADD: build.add,
    ir.BinaryOp.SUB: build.sub,
    ir.BinaryOp.MIN: build.minimum,
    ir.BinaryOp.MAX: build.maximum,
}


def _hull(bounds: list[Range]) -> tuple[ir.Expr, int] | None:
    """Start and extent of a range that holds all of them; None if the extent is not constant."""
    if not bounds:
        return None
    lowest, highest = bounds[0]
    for low, high in bounds[1:]:
        below, above = constant_difference(low, lowest), constant_difference(high, highest)
        if below is None or above is None:
            return None
        lowest = low if below < 0 else lowest
        highest = high if above > 0 else highest
    extent = constant_difference(highest, lowest)
    return None if extent is None else (lowest, max(extent + 1, 1))
