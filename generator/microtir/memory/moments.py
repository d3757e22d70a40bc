"""Which bytes of which buffer each call of main touches, by the rows that the layers declare."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from microtir.memory.in_place import Pair, in_place
from microtir.tir.analysis.bounds import Bounds
from microtir.tir.analysis.interval import Interval
from microtir.tir.ir import (
    Allocate,
    Buffer,
    BufferView,
    For,
    Invoke,
    Let,
    PrimFunc,
    RowAccess,
    Seq,
    Stmt,
)
from microtir.tir.visitor import allocations, buffers_read, buffers_written


@dataclass(frozen=True, slots=True)
class Touch:
    """Bytes [start, stop) of a buffer, as if each of its rows had a place of its own."""

    moment: int
    start: int
    stop: int
    is_read: bool
    is_written: bool


def touches(
    body: Stmt, callees: Mapping[str, PrimFunc], buffers: Sequence[Buffer]
) -> tuple[int, Mapping[Buffer, list[Touch]], Mapping[Pair, list[int]]]:
    """Run main's calls in order.

    Returns:
        Their number, what each touches of `buffers`, and for each input and output of which one
        takes the other's place within calls, at which moments.
    """
    found: dict[Buffer, list[Touch]] = {buffer: [] for buffer in buffers}
    reads = {name: frozenset(buffers_read(f.body)) for name, f in callees.items()}
    writes = {name: frozenset(buffers_written(f.body)) for name, f in callees.items()}
    over = {name: in_place(f) for name, f in callees.items()}
    pairs: dict[Pair, list[int]] = {}
    moment = -1
    for moment, (call, scalars) in enumerate(calls(body, Bounds())):
        callee = callees.get(call.function)
        spans: dict[Buffer, tuple[Buffer, int, int]] = {}
        for number, arg in enumerate(call.args):
            if not isinstance(arg, BufferView) or arg.buffer not in found:
                continue
            if callee is None:
                found[arg.buffer].append(Touch(moment, *_span(arg, None, ()), True, True))
                continue
            param = callee.params[number]
            assert isinstance(param, Buffer)
            rows = callee.rows.get(param)
            start, stop = _span(arg, rows, scalars)
            if start < stop:
                spans[param] = arg.buffer, start, stop
                # What scratch holds before a call means nothing, so nothing reads it.
                is_read = param in reads[callee.name] and param is not callee.scratch
                is_read |= rows is not None and rows.adds  # what is left there is still needed
                is_written = param in writes[callee.name] or param is callee.scratch
                found[arg.buffer].append(Touch(moment, start, stop, is_read, is_written))
        for x, y in over[callee.name] if callee is not None else ():
            if x in spans and y in spans and spans[x][1:] == spans[y][1:]:
                pairs.setdefault((spans[x][0], spans[y][0]), []).append(moment)
    return moment + 1, found, pairs


def _span(view: BufferView, rows: RowAccess | None, scalars: Sequence[int]) -> tuple[int, int]:
    size = math.prod(view.shape) * view.dtype.bytes
    if rows is None:
        return view.byte_offset, view.byte_offset + size
    y0, y1 = scalars[-2:]
    if y0 >= y1:
        return 0, 0
    row = size // view.shape[0]
    first = max(y0 * rows.stride + rows.offset, 0)
    stop = min((y1 - 1) * rows.stride + rows.offset + rows.extent, rows.height)
    return view.byte_offset + first * row, view.byte_offset + stop * row


def calls(statement: Stmt, bounds: Bounds) -> Iterator[tuple[Invoke, tuple[int, ...]]]:
    """Yield the calls in the order of execution, with the values of their integer arguments."""
    match statement:
        case Invoke(_, args):
            values = (bounds.of(a).low for a in args if not isinstance(a, BufferView))
            yield statement, tuple(values)
        case Seq(statements):
            for inner in statements:
                yield from calls(inner, bounds)
        case Allocate():
            yield from calls(allocations(statement)[1], bounds)
        case For(var, start, stop, body):
            for value in range(bounds.of(start).low, bounds.of(stop).high):
                bounds.ranges[var] = Interval(value, value)
                yield from calls(body, bounds)
        case Let(var, value, body):
            bounds.ranges[var] = bounds.of(value)
            yield from calls(body, bounds)
        case _:
            return
