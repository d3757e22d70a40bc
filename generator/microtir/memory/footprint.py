"""The bytes that a layer function touches for one row, derived from its body.

The planner takes the rows that a function declares; the checker takes these.  Indices are
evaluated over the ranges of the loops for one value of the row, so that clipped windows and rings
give exactly their rows.  Of a ring only slots can be read off, since passes take multiples of R
out of its indices; which row is meant by a slot is what the declared rows are asked for, and
nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from microtir.errors import MemoryPlanError
from microtir.tir import ir
from microtir.tir.analysis.facts import Facts
from microtir.tir.analysis.interval import Interval
from microtir.tir.analysis.regions import elements, reach
from microtir.tir.visitor import children


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes [start, stop) of a parameter; byte b of it is byte b + shift of the tensor.

    Where a ring of R slots holds one of the rows behind the first R, `shift` is not 0.
    """

    param: ir.Buffer
    start: int
    stop: int
    shift: int
    is_write: bool


class Footprints:
    """The spans of the functions of a module; each is worked out once."""

    def __init__(self) -> None:
        self._known: dict[tuple[ir.PrimFunc, tuple[int, ...]], tuple[Span, ...]] = {}

    def of(self, function: ir.PrimFunc, scalars: Sequence[int]) -> Iterator[tuple[Span, ...]]:
        """Yield spans of a call, row by row in order if it takes a row range, else all at once."""
        if function.row_range is None:
            yield self._one(function, tuple(scalars))
            return
        *others, y0, y1 = scalars
        for y in range(y0, y1):
            yield self._one(function, (*others, y, y + 1))

    def _one(self, function: ir.PrimFunc, scalars: tuple[int, ...]) -> tuple[Span, ...]:
        key = function, scalars
        if key not in self._known:
            reader = _Reader(function, scalars)
            reader.stmt(function.body)
            self._known[key] = tuple(dict.fromkeys(reader.spans))
        return self._known[key]


class _Reader:
    """Visits a body with the ranges of its variables and notes what it touches."""

    def __init__(self, function: ir.PrimFunc, scalars: Sequence[int]) -> None:
        self.function = function
        self.y0 = scalars[-2] if len(scalars) > 1 else 0
        self.params = frozenset(p for p in function.params if isinstance(p, ir.Buffer))
        variables = [p for p in function.params if isinstance(p, ir.Var)]
        values = zip(variables, scalars, strict=True)
        self.facts = Facts()
        self.facts.bounds.ranges.update({var: Interval(value, value) for var, value in values})
        self.spans: list[Span] = []

    def stmt(self, s: ir.Stmt) -> None:
        match s:
            case ir.Seq(statements):
                for inner in statements:
                    self.stmt(inner)
            case ir.For(var, start, stop, body):
                self.exprs((start, stop))
                if self.facts.interval(start).low < self.facts.interval(stop).high:
                    with self.facts.loop(var, start, stop):
                        self.stmt(body)
            case ir.Let(var, value, body):
                self.expr(value)
                with self.facts.let(var, value):
                    self.stmt(body)
            case ir.If(condition, then, otherwise):
                self.expr(condition)
                known = self.facts.interval(condition)
                if known.high:
                    with self.facts.assuming(condition):
                        self.stmt(then)
                if otherwise is not None and not known.low:
                    with self.facts.assuming(condition, truth=False):
                        self.stmt(otherwise)
            case ir.Allocate(_, body):
                self.stmt(body)
            case ir.Store(buffer, indices, value):
                self.exprs((*indices, value))
                self.access(buffer, indices, is_write=True)
            case ir.KernelCall():
                self.kernel(s)
            case ir.ExternCall():
                self.extern(s)
            case ir.Invoke():
                raise MemoryPlanError("a layer function calls another one", where=s.function)

    def exprs(self, items: Sequence[ir.Expr]) -> None:
        for item in items:
            self.expr(item)

    def expr(self, e: ir.Expr) -> None:
        match e:
            case ir.Load(buffer, indices):
                self.exprs(indices)
                self.access(buffer, indices, is_write=False)
            case ir.Select(condition, then, otherwise):
                self.expr(condition)
                known = self.facts.interval(condition)
                if known.high:
                    with self.facts.assuming(condition):
                        self.expr(then)
                if not known.low:
                    with self.facts.assuming(condition, truth=False):
                        self.expr(otherwise)
            case _:
                for part in children(e):
                    self.expr(part)  # type: ignore[arg-type]  # parts of an Expr are Exprs

    def access(self, buffer: ir.Buffer, indices: Sequence[ir.Expr], *, is_write: bool) -> None:
        if buffer in self.params:
            self.note(buffer, indices, (0, 1), is_write=is_write)

    def kernel(self, s: ir.KernelCall) -> None:
        """Note a kernel's regions, as elements counted from the pointer that it is given."""
        pointers = dict(zip(s.meaning.params, s.args, strict=True))
        for arg in s.args:
            self.exprs(arg.indices if isinstance(arg, ir.BufferArgument) else (arg,))
        for is_write, regions in ((False, s.contract.reads), (True, s.contract.writes)):
            for region in regions:
                arg = pointers[region.buffer]
                if isinstance(arg, ir.BufferArgument) and arg.buffer in self.params:
                    span = reach(region, pointers)
                    self.note(arg.buffer, arg.indices, span, is_write=is_write)

    def extern(self, s: ir.ExternCall) -> None:
        """Note all elements of the parameters that the function reads or writes."""
        for param, arg in zip(s.function.params, s.args, strict=True):
            if not isinstance(arg, ir.BufferArgument):
                self.expr(arg)
                continue
            self.exprs(arg.indices)
            if arg.buffer not in self.params or not isinstance(param, ir.Buffer):
                continue
            for is_write, used in ((False, s.function.reads), (True, s.function.writes)):
                if param in used:
                    self.note(arg.buffer, arg.indices, (0, elements(param)), is_write=is_write)

    def note(
        self,
        buffer: ir.Buffer,
        indices: Sequence[ir.Expr],
        reach: tuple[int, int],
        *,
        is_write: bool,
    ) -> None:
        """Note spans of the elements [index + reach[0], index + reach[1]), a row at a time."""
        extents = [dim for dim in buffer.shape if isinstance(dim, int)]
        assert len(extents) == len(buffer.shape), "layers of a model have constant shapes"
        size = buffer.dtype.bytes
        if not extents:
            self.spans.append(Span(buffer, 0, size, 0, is_write))
            return
        slots, row = extents[0], math.prod(extents[1:])
        inner_low = inner_high = 0
        for index, extent in zip(indices[1:], extents[1:], strict=True):
            interval = self.facts.interval(index)
            inner_low = inner_low * extent + max(interval.low, 0)
            inner_high = inner_high * extent + min(interval.high, extent - 1)
        start, stop = inner_low + reach[0], inner_high + reach[1]
        touched = self.slots(indices[0], slots)
        if not touched:
            return  # never executed
        declared = self.function.rows.get(buffer)
        if declared is None or declared.height <= slots:
            if (start == 0 and stop == row) or len(touched) == 1:
                first, last = touched[0] * row + start, touched[-1] * row + stop
                first, last = max(first, 0), min(last, slots * row)
                self.spans.append(Span(buffer, first * size, last * size, 0, is_write))
                return
            meant: Iterable[int] = touched
        else:
            meant = self.meant(touched, slots, declared)
        for number in meant:
            at, shift = number % slots * row, number // slots * slots * row
            self.spans.append(
                Span(buffer, (at + start) * size, (at + stop) * size, shift * size, is_write)
            )

    def meant(self, touched: Sequence[int], slots: int, declared: ir.RowAccess) -> list[int]:
        """Return the declared rows that lie in slots that are touched.

        Raises:
            MemoryPlanError: a slot is touched in which no declared row lies.
        """
        first = self.y0 * declared.stride + declared.offset
        rows = range(max(first, 0), min(first + declared.extent, declared.height))
        unexplained = set(touched) - {row % slots for row in rows}
        if unexplained:
            raise MemoryPlanError(
                f"slot {min(unexplained)} is touched for row {self.y0}, and its rows are "
                f"{rows.start} to {rows.stop} of {slots} slots",
                where=self.function.name,
            )
        return [row for row in rows if row % slots in touched]

    def slots(self, index: ir.Expr, slots: int) -> Sequence[int]:
        """Return slots that an outermost index may reach, ascending."""
        if (
            isinstance(index, ir.Binary)
            and index.op is ir.BinaryOp.FLOORMOD
            and index.b == ir.IntImm(slots)
        ):
            rows = self.facts.interval(index.a)
            last = min(rows.high, rows.low + slots - 1)
            return sorted({row % slots for row in range(rows.low, last + 1)})
        reached = self.facts.interval(index)
        return range(max(reached.low, 0), min(reached.high, slots - 1) + 1)
