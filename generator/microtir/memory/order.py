"""Derives how far an output must lie from an input, from the order of reads and writes of calls.

All calls are followed at once.  Loops around what is written are executed turn by turn, as arrays
with a number for each turn; what is read between two writes only counts by its extent, so that
loops without a write stay intervals.  A statement reads before it writes.  Any write of a
micro-kernel may come before any of its reads, so that whole blocks of registers count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from microtir.dtype import DType
from microtir.errors import MemoryPlanError
from microtir.memory.ranges import Range, Ranges
from microtir.tir import ir
from microtir.tir.analysis.regions import reach, regions
from microtir.tir.visitor import buffers_read, buffers_written, children
from microtir.tir.walker import Call, StatementWalker

Bytes = npt.NDArray[np.int64]
Pair = tuple[ir.Buffer, ir.Buffer]
"""Parameters of a function: an input, and an output that may lie over part of it."""

_MOST = 1 << 21  # turns and accesses of all calls that are followed at once
_FAR = np.int64(1) << 44  # more than the bytes of any tensor; times the calls still 64 bits
_BYTE_TYPES = (DType.INT8, DType.UINT8)


@dataclass(frozen=True, slots=True)
class Order:
    """Bytes between an input and an output by the order within calls; a number for each call.

    `below` is how far the input starts behind the start of the output if it is the one above,
    `above` how far the output starts behind the start of the input. Both may be negative.
    """

    below: Bytes
    above: Bytes


def orders(function: ir.PrimFunc, calls: Sequence[Sequence[int]]) -> Mapping[Pair, Order]:
    """Return the orders of a function's calls with these integer arguments.

    Pairs of which nothing is known are missing: they keep apart what a call touches.
    """
    pairs = _pairs(function)
    if not pairs:
        return {}
    variables = [p for p in function.params if isinstance(p, ir.Var)]
    values = np.array(calls, np.int64).reshape(len(calls), len(variables))
    ranges = {v: (values[:, n], values[:, n]) for n, v in enumerate(variables)}
    numbers = {b: n for n, b in enumerate(dict.fromkeys(b for pair in pairs for b in pair), 1)}
    reader = _Reader(numbers, frozenset(y for _, y in pairs))
    try:
        events = reader.all_of(function.body, _Turns(len(calls), ranges))
    except MemoryPlanError:
        return {}
    return {(x, y): _order(events, numbers[x], numbers[y], len(calls)) for x, y in pairs}


def _order(events: _Events, x: int, y: int, calls: int) -> Order:
    """Return how far apart two parameters must be, by their numbers."""
    own = (events.buffer == x) | (events.buffer == -y)
    call, low, high = events.turn[own], events.low[own], events.high[own]
    is_write = events.buffer[own] < 0
    # Reads of later calls are further away than any of the same call.
    ahead = np.where(is_write, calls * _FAR, low + call * _FAR)
    behind = np.where(is_write, -calls * _FAR, high - call * _FAR)
    lowest = np.minimum.accumulate(ahead[::-1])[::-1] - call * _FAR
    highest = np.maximum.accumulate(behind[::-1])[::-1] + call * _FAR
    below, above = np.full(calls, -_FAR), np.full(calls, -_FAR)
    first, last = is_write & (lowest < _FAR // 2), is_write & (highest > -_FAR // 2)
    np.maximum.at(below, call[first], (high - lowest)[first])
    np.maximum.at(above, call[last], (highest - low)[last])
    return Order(below, above)


def _pairs(function: ir.PrimFunc) -> list[Pair]:
    """Return the inputs with outputs over whose bytes C may write while it reads them."""
    read, written = buffers_read(function.body), buffers_written(function.body)
    params = [p for p in function.params if isinstance(p, ir.Buffer) and p is not function.scratch]
    inputs = [p for p in params if p in read and p not in written]
    outputs = [p for p in params if p in written]
    # Objects of two types do not share memory for a C compiler, unless one is made of characters.
    return [
        (x, y)
        for x in inputs
        for y in outputs
        if x.dtype is y.dtype or x.dtype in _BYTE_TYPES or y.dtype in _BYTE_TYPES
    ]


def _unknown(why: str) -> MemoryPlanError:
    return MemoryPlanError(f"the order of accesses is unknown: {why}")


@dataclass(frozen=True, slots=True)
class _Turns:
    """Executions of a statement, in order, and what its variables may be in each."""

    count: int
    ranges: Mapping[ir.Var, Range]

    def some(self, which: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> _Turns:
        """Return some of them, or some several times over."""
        number = int(which.sum()) if which.dtype == np.bool_ else len(which)
        if number > _MOST:
            raise _unknown("there are too many iterations")
        known = {
            var: (
                np.broadcast_to(low, (self.count,))[which],
                np.broadcast_to(high, (self.count,))[which],
            )
            for var, (low, high) in self.ranges.items()
        }
        return _Turns(number, known)

    def bound(self, var: ir.Var, known: Range) -> _Turns:
        return _Turns(self.count, {**self.ranges, var: known})


@dataclass(frozen=True, slots=True)
class _Events:
    """Accesses in the order of execution: by which turn, to which bytes of which parameter.

    `buffer` is the number of the parameter, negative for a write.
    """

    turn: Bytes
    buffer: Bytes
    low: Bytes
    high: Bytes

    @staticmethod
    def joined(parts: Sequence[_Events]) -> _Events:
        """Return those of statements one after the other, turn by turn."""
        parts = [part for part in parts if len(part.turn)]
        if len(parts) < 2:
            return parts[0] if parts else _NONE
        columns = [
            np.concatenate([getattr(part, name) for part in parts]) for name in _Events.__slots__
        ]
        if len(columns[0]) > _MOST:
            raise _unknown("there are too many accesses")
        order = np.argsort(columns[0], kind="stable")
        return _Events(*(column[order] for column in columns))

    def by(self, turns: Bytes) -> _Events:
        """Return the same, each turn as part of another."""
        return _Events(turns[self.turn], self.buffer, self.low, self.high)


_NO_BYTES: Bytes = np.zeros(0, np.int64)
_NONE = _Events(_NO_BYTES, _NO_BYTES, _NO_BYTES, _NO_BYTES)


class _Reader(StatementWalker[_Turns, _Events]):
    """Follows a body.

    Args:
        followed: parameters whose accesses count, and their numbers.
        outputs: those of them that are written.
    """

    def __init__(self, followed: Mapping[ir.Buffer, int], outputs: frozenset[ir.Buffer]) -> None:
        self.followed = followed
        self.outputs = outputs
        self.writes: dict[int, bool] = {}

    def all_of(self, s: ir.Stmt, turns: _Turns) -> _Events:
        return _Events.joined(list(self.statement(s, turns)))

    def inside_let(self, s: ir.Let, known: _Turns) -> _Turns:
        if not s.value.dtype.is_int:
            return known
        return known.bound(s.var, Ranges(known.ranges).of(s.value))

    def store(self, s: ir.Store, known: _Turns) -> Iterator[_Events]:
        if s.buffer in self.outputs:
            yield self.access(s.buffer, s.indices, (0, 1), known, is_write=True)

    def loop(self, s: ir.For, known: _Turns) -> Iterator[_Events]:
        ranges = Ranges(known.ranges)
        (first, first_high), (low, stop) = ranges.of(s.start), ranges.of(s.stop)
        if not self.writes_output(s.body):
            some = np.broadcast_to(first < stop, (known.count,))
            inner = known.bound(s.var, (first, stop - 1)).some(some)
            yield self.all_of(s.body, inner).by(np.flatnonzero(some))
            return
        if s.kind is ir.LoopKind.VECTORIZED:
            raise _unknown("iterations of a loop are executed together")
        if (first != first_high).any() or (low != stop).any():
            raise _unknown("the bounds of a loop depend on data")
        extents = np.broadcast_to(np.maximum(stop - first, 0), (known.count,))
        if int(extents.sum()) > _MOST:
            raise _unknown("there are too many iterations")
        outer = np.repeat(np.arange(known.count), extents)
        begins = np.cumsum(extents) - extents
        value = np.broadcast_to(first, (known.count,))[outer] + np.arange(len(outer))
        value = value - begins[outer]
        inner = known.some(outer).bound(s.var, (value, value))
        yield self.all_of(s.body, inner).by(outer)

    def branch(
        self, condition: ir.Expr, s: ir.Stmt, known: _Turns, *, truth: bool
    ) -> Iterator[_Events]:
        """Yield what a branch does in the turns that may take it."""
        some = Ranges(known.ranges).may_be(condition, truth=truth)
        some = np.broadcast_to(some, (known.count,))
        yield self.all_of(s, known.some(some)).by(np.flatnonzero(some))

    def writes_output(self, s: ir.Stmt) -> bool:
        if id(s) not in self.writes:
            self.writes[id(s)] = not self.outputs.isdisjoint(buffers_written(s))
        return self.writes[id(s)]

    def reads(self, items: Sequence[ir.Expr], known: _Turns) -> Iterator[_Events]:
        for item in items:
            yield from self.loads(item, known)

    def loads(self, e: ir.Expr, turns: _Turns) -> Iterator[_Events]:
        match e:
            case ir.Load(buffer, indices):
                yield from self.reads(indices, turns)
                if buffer in self.followed:
                    yield self.access(buffer, indices, (0, 1), turns, is_write=False)
            case ir.Select(condition, then, otherwise):
                yield from self.loads(condition, turns)
                for branch, truth in ((then, True), (otherwise, False)):
                    some = Ranges(turns.ranges).may_be(condition, truth=truth)
                    some = np.broadcast_to(some, (turns.count,))
                    numbers = np.flatnonzero(some)
                    if len(numbers):
                        inner = turns.some(some)
                        yield from (x.by(numbers) for x in self.loads(branch, inner))
            case _:
                yield from self.reads(children(e), turns)  # type: ignore[arg-type]  # Exprs

    def call(self, s: Call, known: _Turns) -> Iterator[_Events]:
        if isinstance(s, ir.Invoke):
            raise _unknown("a layer function calls another one")
        for arg in s.args:
            yield from self.reads(
                arg.indices if isinstance(arg, ir.BufferArgument) else (arg,), known
            )
        params = s.meaning.params if isinstance(s, ir.KernelCall) else s.function.params
        arguments = dict(zip(params, s.args, strict=True))
        for arg, region, is_write in regions(s):
            if arg.buffer in self.followed:
                span = reach(region, arguments)
                yield self.access(arg.buffer, arg.indices, span, known, is_write=is_write)

    def access(
        self,
        buffer: ir.Buffer,
        indices: Sequence[ir.Expr],
        span: tuple[int, int],
        turns: _Turns,
        *,
        is_write: bool,
    ) -> _Events:
        """Return elements [index + span[0], index + span[1]) of a parameter, in every turn."""
        low = high = np.zeros((), np.int64)
        ranges = Ranges(turns.ranges)
        for index, extent in zip(indices, buffer.shape, strict=True):
            assert isinstance(extent, int), "layers of a model have constant shapes"
            first, last = ranges.of(index)
            low = low * extent + np.clip(first, 0, extent - 1)
            high = high * extent + np.clip(last, 0, extent - 1)
        size, number = buffer.dtype.bytes, self.followed[buffer]
        return _Events(
            np.arange(turns.count),
            np.full(turns.count, -number if is_write else number),
            np.broadcast_to((low + span[0]) * size, (turns.count,)),
            np.broadcast_to((high + span[1]) * size, (turns.count,)),
        )
