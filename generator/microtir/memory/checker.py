"""Independent proof that a placement never overwrites a living byte.

Shares no code and no notion with the planner: it knows nothing of lifetimes, nor of the rows that
layers declare.  It executes main call by call, and of every byte of the workspace it remembers
which byte of which tensor was written there last.  A read demands that each byte that it reaches
is the one that it means: after a ring has moved on, or another buffer has taken the place, it is
not.  No call may write where another of its arguments is used, unless its accesses one by one show
that each byte is read before; and every view must lie where its elements and its layer need it.
At the end every byte of every output must be there, and sums have taken each row once, in order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from microtir.dtype import DType
from microtir.errors import MemoryPlanError
from microtir.memory.footprint import Footprints, Span
from microtir.memory.trace import keeps_old_rows, overwrites_unread, trace
from microtir.tir import ir
from microtir.tir.analysis.bounds import Bounds, declared_range
from microtir.tir.analysis.interval import Interval
from microtir.tir.visitor import allocations, buffers_read, buffers_written, walk

_TENSOR = 1 << 40  # more than the bytes of any tensor

Spot = tuple[int, int]
"""The number of a pool that is used, and a byte of it."""


def check(
    main: ir.PrimFunc,
    placed: ir.PrimFunc,
    callees: Mapping[str, ir.PrimFunc],
    sizes: Sequence[int],
    inputs: Mapping[ir.Buffer, Spot] = MappingProxyType({}),
    outputs: Mapping[ir.Buffer, Spot] = MappingProxyType({}),
    results: Sequence[ir.Buffer] | None = None,
) -> None:
    """Prove `placed` against `main`, which has the buffers before placement.

    Args:
        main: before placement.
        placed: after it.
        callees: the layer functions by name.
        sizes: bytes of each pool, in the order of the parameters that placement added.
        inputs: where the caller puts those inputs that lie in the workspace.
        outputs: where he finds those outputs that do.
        results: parameters that are the other outputs, each in memory of its own; all others are
            the caller's to read. Without it, what is done to parameters is not looked at.

    Raises:
        MemoryPlanError: names the call, the buffer and the first byte that is wrong.
    """
    added = placed.params[max(len(placed.params) - len(sizes), 0) :]
    pools = [p for p in added if isinstance(p, ir.Buffer) and p not in main.params]
    pointers = frozenset(p for p in main.params if isinstance(p, ir.Buffer))
    read_only = frozenset[ir.Buffer]() if results is None else pointers.difference(results)
    results = results or ()
    if len(pools) != len(sizes):
        raise MemoryPlanError("placement changed the parameters", where=main.name)
    bytes_ = [*sizes, *(_all_of(buffer).stop for buffer in results)]
    starts = list(accumulate(bytes_, initial=0))
    memory = _Memory(
        np.full(sum(bytes_), -1, np.int64),
        dict(zip((*pools, *results), zip(starts, bytes_, strict=False), strict=True)),
    )
    for buffer, (pool, offset) in (*inputs.items(), *outputs.items()):
        if not 0 <= offset <= sizes[pool] - _all_of(buffer).stop:
            raise MemoryPlanError(f"it lies outside of pool {pool}", where=f"port {buffer.name}")
    ports = frozenset((*inputs, *outputs, *results))
    for buffer, (pool, offset) in inputs.items():
        memory.write(_all_of(buffer), _Place(buffer, starts[pool] + offset, 0))
    _run(main, placed, callees, memory, ports, read_only - ports)
    places = {buffer: starts[pool] + offset for buffer, (pool, offset) in outputs.items()}
    places |= zip(results, starts[len(sizes) :], strict=False)
    for buffer, start in places.items():
        memory.read(_all_of(buffer), _Place(buffer, start, 0), "the caller")


def _run(
    main: ir.PrimFunc,
    placed: ir.PrimFunc,
    callees: Mapping[str, ir.PrimFunc],
    memory: _Memory,
    ports: frozenset[ir.Buffer],
    read_only: frozenset[ir.Buffer],
) -> None:
    """Execute both mains call by call; `read_only` is the caller's memory that he only gives."""
    sums = _Sums()
    calls = zip(_calls(main.body, Bounds()), _calls(placed.body, Bounds()), strict=True)
    for step, ((before, scalars), (after, same)) in enumerate(calls):
        if isinstance(before, ir.Load) or isinstance(after, ir.Load):
            _check_condition(before, after, memory, step)
            continue
        if (before.function, len(before.args), scalars) != (after.function, len(after.args), same):
            raise MemoryPlanError(f"placement changed call {step} of {before.function}")
        callee = callees[before.function]
        where = f"call {step} of {before.function}"
        _check_ranges(callee, scalars, where)
        places = _places(callee, before, after, memory, ports, where)
        _check_inputs(callee, before, read_only, where)
        memory.call(callee, scalars, places, where)
        sums.call(callee, scalars, where)
    sums.end()


def _all_of(buffer: ir.Buffer) -> Span:
    elements = math.prod(d for d in buffer.shape if isinstance(d, int))
    return Span(buffer, 0, elements * buffer.dtype.bytes, 0, is_write=False)


@dataclass(frozen=True, slots=True)
class _Place:
    """The place where an argument starts among all pools in a row; its buffer and the offset."""

    buffer: ir.Buffer
    start: int
    offset: int


@dataclass(slots=True)
class _Memory:
    """The content of each byte of the workspace: a byte of a tensor, or -1.

    `pools` has the first byte and the number of bytes of each.
    """

    holds: npt.NDArray[np.int64]
    pools: Mapping[ir.Buffer, tuple[int, int]]
    numbers: dict[ir.Buffer, int] = field(default_factory=dict)
    footprints: Footprints = field(default_factory=Footprints)

    def call(
        self,
        callee: ir.PrimFunc,
        scalars: Sequence[int],
        places: Mapping[ir.Buffer, _Place],
        where: str,
    ) -> None:
        used: list[Span] = []
        scratch = callee.scratch
        rows = [
            [s for s in spans if s.param in places and s.param is not scratch]
            for spans in self.footprints.of(callee, scalars)
        ]
        written = {span.param for spans in rows for span in spans if span.is_write}
        # What the call does not write is there before it, and whether it stays there until it is
        # read is the business of the clash below.
        for spans in rows:
            for span in spans:
                used.append(span)
                if span.param not in written:
                    self.read(span, places[span.param], where)
        if scratch is not None and scratch in places:
            # How much of it is used depends on all rows together.
            whole = replace(_all_of(scratch), is_write=True)
            used.append(whole)
            self.write(whole, places[scratch])
        old = keeps_old_rows(callee, scalars)
        for spans in rows:
            for span in spans:
                if span.param in written & old and not span.is_write:
                    self.read(span, places[span.param], where)
            for span in spans:
                if span.is_write:
                    self.write(span, places[span.param])
        clash = _clash(used, places)
        if clash is not None and not _is_in_order(callee, scalars, places):
            raise MemoryPlanError(
                "it is written over another argument",
                where=f"{where}, buffer {places[clash].buffer.name}",
            )

    def read(self, span: Span, place: _Place, where: str) -> None:
        start, stop = place.start + span.start, place.start + span.stop
        first = self.label(span, place)
        wanted = np.arange(first, first + stop - start)
        wrong = np.flatnonzero(self.holds[start:stop] != wanted)
        if wrong.size:
            holder = int(self.holds[start + int(wrong[0])])
            number = self.numbers[place.buffer]
            another = "row" if holder // _TENSOR == number else "buffer"
            written = "nobody wrote it" if holder < 0 else f"another {another} wrote it last"
            raise MemoryPlanError(
                f"{self.text(start + int(wrong[0]))} is read but {written}",
                where=f"{where}, buffer {place.buffer.name}",
            )

    def write(self, span: Span, place: _Place) -> None:
        first = self.label(span, place)
        start, stop = place.start + span.start, place.start + span.stop
        self.holds[start:stop] = np.arange(first, first + stop - start)

    def text(self, byte: int) -> str:
        """Return a byte of all pools, counted from the start of its own."""
        pool = next(p for p, (base, size) in self.pools.items() if base <= byte < base + size)
        return f"byte {byte - self.pools[pool][0]} of the {pool.name}"

    def label(self, span: Span, place: _Place) -> int:
        """Return what the first byte of a span holds once it is written."""
        number = self.numbers.setdefault(place.buffer, len(self.numbers) + 1)
        return number * _TENSOR + place.offset + span.start + span.shift


@dataclass(slots=True)
class _Sums:
    """The rows that functions have taken which go on from what their last call has left.

    The first row begins a sum; of floats the order of the others counts as well.
    """

    rows: dict[ir.PrimFunc, int] = field(default_factory=dict)

    def call(self, callee: ir.PrimFunc, scalars: Sequence[int], where: str) -> None:
        if not _goes_on(callee):
            return
        first, stop = scalars[-2:]
        due = self.rows.get(callee, 0)
        rows = callee.row_range.stop.high if callee.row_range is not None else None
        due = 0 if due == rows else due  # a loop around begins again
        if first != due:
            raise MemoryPlanError(f"it adds row {first}, but {due} is the next one", where=where)
        self.rows[callee] = stop

    def end(self) -> None:
        for callee, taken in self.rows.items():
            assert callee.row_range is not None, "only such functions add rows"
            rows = callee.row_range.stop.high
            if rows is not None and taken != rows:
                raise MemoryPlanError(f"it adds {taken} of {rows} rows", where=callee.name)


@lru_cache(maxsize=4096)
def _written(callee: ir.PrimFunc) -> frozenset[ir.Buffer]:
    return frozenset(buffers_written(callee.body))


@lru_cache(maxsize=4096)
def _goes_on(callee: ir.PrimFunc) -> bool:
    """Return whether a function of rows reads what it writes in a parameter that is not by rows."""
    whole = {p for p in callee.params if isinstance(p, ir.Buffer)} - {callee.scratch, *callee.rows}
    updated = whole & set(buffers_read(callee.body)) & _written(callee)
    return callee.row_range is not None and bool(updated)


def _check_ranges(callee: ir.PrimFunc, scalars: Sequence[int], where: str) -> None:
    """Check that arguments are in the ranges for which a layer's accesses were proven."""
    variables = [p for p in callee.params if isinstance(p, ir.Var)]
    for var, value in zip(variables, scalars, strict=True):
        known = declared_range(var)
        if value not in known:
            raise MemoryPlanError(
                f"'{var.name}' is {value}, and its range is {known.low} to {known.high}",
                where=where,
            )


def _check_inputs(
    callee: ir.PrimFunc, call: ir.Invoke, read_only: frozenset[ir.Buffer], where: str
) -> None:
    """Check that no call writes memory that the caller keeps."""
    for arg, param in zip(call.args, callee.params, strict=True):
        if isinstance(arg, ir.BufferView) and arg.buffer in read_only and param in _written(callee):
            raise MemoryPlanError(
                "a call writes it, but only the caller may write it",
                where=f"{where}, buffer {arg.buffer.name}",
            )


def _places(
    callee: ir.PrimFunc,
    before: ir.Invoke,
    after: ir.Invoke,
    memory: _Memory,
    ports: frozenset[ir.Buffer],
    where: str,
) -> dict[ir.Buffer, _Place]:
    """Return the arguments that lie in the workspace, after checks of bounds and alignment."""
    places: dict[ir.Buffer, _Place] = {}
    for arg, view, param in zip(before.args, after.args, callee.params, strict=True):
        if not isinstance(arg, ir.BufferView):
            continue
        if arg.buffer.scope is not ir.Scope.WORKSPACE and arg.buffer not in ports:
            continue
        assert isinstance(view, ir.BufferView) and isinstance(param, ir.Buffer)
        about = f"{where}, buffer {arg.buffer.name}"
        if view.buffer not in memory.pools:
            raise MemoryPlanError("the buffer does not lie in any pool", where=about)
        base, size = memory.pools[view.buffer]
        start = view.byte_offset
        stop = start + math.prod(view.shape) * view.dtype.bytes
        if start < 0 or stop > size:
            raise MemoryPlanError(
                f"bytes {start} to {stop} lie outside the {view.buffer.name} of {size}", where=about
            )
        need = max(view.dtype.bytes, param.alignment)
        # Memory of its own is as aligned as its elements, which the code asks of the caller.
        if view.buffer is not arg.buffer and (start % need or view.buffer.alignment % need):
            raise MemoryPlanError(
                f"byte {start} of a block at a multiple of {view.buffer.alignment} is not at a "
                f"multiple of {need}",
                where=about,
            )
        places[param] = _Place(arg.buffer, base + start, arg.byte_offset)
    return places


def _clash(used: Sequence[Span], places: Mapping[ir.Buffer, _Place]) -> ir.Buffer | None:
    """Return a parameter through which a call writes where it uses another one, or None."""
    pieces = [
        (span.param, places[span.param].start + span.start, places[span.param].start + span.stop)
        for span in used
    ]
    for span, (param, start, stop) in zip(used, pieces, strict=True):
        if span.is_write:
            for other, other_start, other_stop in pieces:
                if other is not param and start < other_stop and other_start < stop:
                    return param
    return None


def _is_in_order(
    callee: ir.PrimFunc, scalars: Sequence[int], places: Mapping[ir.Buffer, _Place]
) -> bool:
    """Return whether a call reads every byte before another argument takes its place.

    Any write of a call may come before any read, unless its accesses, one by one, say otherwise.
    """
    near = _near(callee, places)
    if any(_are_of_two_types(p, q) for p in near.values() for q in _sharing(p, places)):
        return False  # a C compiler may take it that such objects do not share memory
    try:
        accesses = trace(callee, scalars, near)
    except MemoryPlanError:
        return False
    starts = {n: places[p].start for n, p in near.items()}
    sizes = {n: p.dtype.bytes for n, p in near.items()}
    return not overwrites_unread(accesses, starts, sizes)


def _are_of_two_types(p: ir.Buffer, q: ir.Buffer) -> bool:
    """Return whether the elements of two parameters differ; bytes may be those of anything."""
    return len({p.dtype, q.dtype} - {DType.INT8, DType.UINT8}) > 1


def _near(callee: ir.PrimFunc, places: Mapping[ir.Buffer, _Place]) -> dict[int, ir.Buffer]:
    """Return the parameters that share bytes with another one, by position."""
    return {
        n: p
        for n, p in enumerate(callee.params)
        if isinstance(p, ir.Buffer) and p in places and next(_sharing(p, places), None) is not None
    }


def _sharing(param: ir.Buffer, places: Mapping[ir.Buffer, _Place]) -> Iterator[ir.Buffer]:
    """Yield the other parameters that share bytes with one."""
    start, stop = places[param].start, places[param].start + _all_of(param).stop
    for other, place in places.items():
        if other is not param and start < place.start + _all_of(other).stop and place.start < stop:
            yield other


def _check_condition(
    before: ir.Invoke | ir.Load, after: ir.Invoke | ir.Load, memory: _Memory, step: int
) -> None:
    """Check that a condition is what it was when it is asked for."""
    where = f"condition before call {step}"
    if not isinstance(before, ir.Load) or not isinstance(after, ir.Load):
        raise MemoryPlanError("placement changed it", where=where)
    if after.buffer not in memory.pools:
        if after.buffer is not before.buffer:
            raise MemoryPlanError("the buffer does not lie in any pool", where=where)
        return
    (index, *_) = (*after.indices, ir.IntImm(0))
    if not isinstance(index, ir.IntImm):
        raise MemoryPlanError("the place of the buffer is not known", where=where)
    start = memory.pools[after.buffer][0] + index.value
    byte = Span(before.buffer, 0, 1, 0, is_write=False)
    memory.read(byte, _Place(before.buffer, start, 0), where)


def _condition(test: ir.Expr) -> ir.Load:
    """Return what a condition reads: a truth value, or a byte that is not 0."""
    match test:
        case ir.Load():
            return test
        case ir.Binary(ir.BinaryOp.NE, ir.Load() as byte, ir.IntImm(0)):
            return byte
        case _:
            raise MemoryPlanError("a condition of main is not a stored value")


def _calls(
    statement: ir.Stmt, bounds: Bounds
) -> Iterator[tuple[ir.Invoke | ir.Load, tuple[int, ...]]]:
    """Yield the invokes in the order of execution, with the values of their integer arguments.

    Conditions are what they read; of both branches each must find what it needs, so both run, one
    after the other.  A loop whose turns are all the same has two: nothing new happens in the third.
    """
    match statement:
        case ir.Invoke(_, args):
            values = [bounds.of(a) for a in args if not isinstance(a, ir.BufferView)]
            if not all(value.is_point for value in values):
                raise MemoryPlanError("an argument does not follow from the loops around it")
            yield statement, tuple(value.low for value in values)
        case ir.Seq(statements):
            for inner in statements:
                yield from _calls(inner, bounds)
        case ir.Allocate():
            yield from _calls(allocations(statement)[1], bounds)
        case ir.For(var, start, stop, body):
            first, last = bounds.of(start), bounds.of(stop)
            if not (first.is_point and last.is_point):
                raise MemoryPlanError(f"the bounds of '{var.name}' do not follow from its loops")
            turns = range(first.low, last.low)
            for value in turns if any(node is var for node in walk(body)) else turns[:2]:
                bounds.ranges[var] = Interval(value, value)
                yield from _calls(body, bounds)
        case ir.If(test, then, otherwise):
            yield _condition(test), ()
            yield from _calls(then, bounds)
            if otherwise is not None:
                yield from _calls(otherwise, bounds)
        case ir.Let(var, value, body):
            known = bounds.of(value)
            if not known.is_point:
                raise MemoryPlanError(f"the value of '{var.name}' does not follow from the loops")
            bounds.ranges[var] = known
            yield from _calls(body, bounds)
        case _:
            raise MemoryPlanError(
                f"the checker cannot execute a {type(statement).__name__} in main"
            )
