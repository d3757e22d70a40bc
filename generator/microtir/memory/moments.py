"""The bytes that each call of main touches, by buffer, from the rows that the layers declare."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from microtir.memory.order import Order, Pair, orders
from microtir.memory.trace import keeps_old_rows
from microtir.tir.execution import events
from microtir.tir.ir import Buffer, BufferView, Load, PrimFunc, RowAccess, Stmt
from microtir.tir.structural_hash import structural_key
from microtir.tir.visitor import buffers_read, buffers_written


@dataclass(frozen=True, slots=True)
class Touch:
    """Bytes [start, stop) of a buffer, as if each of its rows had a place of its own."""

    moment: int
    start: int
    stop: int
    is_read: bool
    is_written: bool


@dataclass(frozen=True, slots=True)
class Touches:
    """The accesses of the calls of main, in order; `moments` is the number of calls.

    `of` has for each buffer what each call touches.  `orders` has, for an input and an output of
    calls, how far they must lie apart by the order within each, by moment: bytes by which the input
    starts behind the start of the output if it is the one above, and the other way round.
    """

    moments: int
    of: Mapping[Buffer, list[Touch]]
    orders: Mapping[Pair, Mapping[int, tuple[int, int]]]


def touches(body: Stmt, callees: Mapping[str, PrimFunc], buffers: Sequence[Buffer]) -> Touches:
    """Run main's calls in order and note what they touch of `buffers`."""
    touched: dict[Buffer, list[Touch]] = {buffer: [] for buffer in buffers}
    reads = {name: frozenset(buffers_read(f.body)) for name, f in callees.items()}
    writes = {name: frozenset(buffers_written(f.body)) for name, f in callees.items()}
    calls: dict[str, list[_Call]] = {}
    moment = -1
    for call, scalars in events(body):
        if isinstance(call, Load):
            # A condition is read before the call that comes next.
            if call.buffer in touched:
                size = call.buffer.dtype.bytes
                touched[call.buffer].append(Touch(moment + 1, 0, size, True, False))
            continue
        moment += 1
        callee = callees.get(call.function)
        views: dict[Buffer, BufferView] = {}
        for number, arg in enumerate(call.args):
            if not isinstance(arg, BufferView) or arg.buffer not in touched:
                continue
            if callee is None:
                touched[arg.buffer].append(Touch(moment, *_span(arg, None, ()), True, True))
                continue
            param = callee.params[number]
            assert isinstance(param, Buffer)
            rows = callee.rows.get(param)
            start, stop = _span(arg, rows, scalars)
            if start < stop:
                views[param] = arg
                # What scratch holds before a call means nothing, so nothing reads it.
                is_read = param in reads[callee.name] and param is not callee.scratch
                is_written = param in writes[callee.name] or param is callee.scratch
                if rows is not None and is_read and is_written:
                    # Rows that a call itself has written before it reads them are no old ones.
                    is_read = rows.adds or param in keeps_old_rows(callee, scalars)
                is_read |= rows is not None and rows.adds  # what is left there is still needed
                touched[arg.buffer].append(Touch(moment, start, stop, is_read, is_written))
        if callee is not None and len(views) > 1:
            calls.setdefault(callee.name, []).append(_Call(moment, scalars, views))
    return Touches(moment + 1, touched, _orders(callees, calls))


@dataclass(frozen=True, slots=True)
class _Call:
    """A call with the integers and the buffers that it is given."""

    moment: int
    scalars: tuple[int, ...]
    views: Mapping[Buffer, BufferView]


@dataclass(frozen=True, slots=True)
class _KnownOrders:
    """The orders of functions, worked out once for those that are the same but for names and data.

    A pair is known by the numbers of its parameters.
    """

    known: dict[tuple[object, ...], tuple[tuple[int, int, Order], ...]]

    def of(
        self, function: PrimFunc, calls: Sequence[tuple[int, ...]]
    ) -> Iterator[tuple[Pair, Order]]:
        key = (structural_key(function).tokens, tuple(calls))
        if key not in self.known:
            numbers = {param: number for number, param in enumerate(function.params)}
            self.known[key] = tuple(
                (numbers[x], numbers[y], order) for (x, y), order in orders(function, calls).items()
            )
        for x, y, order in self.known[key]:
            first, second = function.params[x], function.params[y]
            assert isinstance(first, Buffer)
            assert isinstance(second, Buffer)
            yield (first, second), order


def _orders(
    callees: Mapping[str, PrimFunc], calls: Mapping[str, Sequence[_Call]]
) -> Mapping[Pair, Mapping[int, tuple[int, int]]]:
    """Return `Touches.orders` of all calls, given the calls of each function."""
    orders: dict[Pair, dict[int, tuple[int, int]]] = {}
    known_orders = _KnownOrders({})
    for name, group in calls.items():
        function = callees[name]
        written = frozenset(buffers_written(function.body))
        for (x, y), order in known_orders.of(function, [call.scalars for call in group]):
            for number, call in enumerate(group):
                if x not in call.views or y not in call.views:
                    continue
                source, target = call.views[x], call.views[y]
                others = [view.buffer for p, view in call.views.items() if p is not y]
                changed = [view.buffer for p, view in call.views.items() if p in written]
                if target.buffer in others or source.buffer in changed:
                    continue
                shift = target.byte_offset - source.byte_offset
                below, above = int(order.below[number]) + shift, int(order.above[number]) - shift
                at = orders.setdefault((source.buffer, target.buffer), {})
                # The same input may be given twice.
                known = at.get(call.moment, (below, above))
                at[call.moment] = max(below, known[0]), max(above, known[1])
    return orders


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
