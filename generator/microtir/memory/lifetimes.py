"""Lifetimes of workspace buffers, read off the TIR main by running its calls on row numbers.

A buffer does not live as a whole.  While a nest of loops runs, a dying input keeps the rows that
are still read and an output holds the rows that are already written, so that one may lie over the
other at a distance; a buffer of one row lives between two calls only.  Every call of main is a
moment, and at each moment a buffer keeps an extent of bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from microtir.errors import MemoryPlanError
from microtir.memory.moments import Touch, touches
from microtir.tir import ir
from microtir.tir.visitor import invokes_of, walk

Bytes = npt.NDArray[np.int64]
"""A position in a buffer per moment."""

_FAR = 1 << 44  # more than the bytes of any buffer


@dataclass(frozen=True, slots=True, eq=False)
class Lifetime:
    """The lifetime of a buffer: which of its bytes are kept at which moment.

    `first` and `last` are steps (positions of Invokes in program order, inclusive), for people.
    At moment `begin + i` bytes [low[i], high[i]) are kept; none where low equals high.
    `over` names inputs of calls that write this buffer, with the moments of these calls, and for
    each how far both must lie apart by the order within the call: bytes by which the input starts
    behind the start of this buffer if it is the one above, and the other way round.  `shared` has
    the most bytes that both may keep at one place while such a call runs.
    """

    buffer: ir.Buffer
    size: int  # bytes
    first: int
    last: int
    alignment: int  # bytes: the strictest of its element type and of the layers that touch it
    begin: int
    low: Bytes
    high: Bytes
    over: Mapping[ir.Buffer, Mapping[int, tuple[int, int]]] = field(default_factory=dict)
    shared: Mapping[ir.Buffer, Bytes] = field(default_factory=dict)

    @property
    def counted(self) -> Bytes:
        """Return bytes per moment that sums count.

        What may lie over an input is not twice there.
        """
        sizes = self.high - self.low
        for shared in self.shared.values():
            sizes = sizes - shared
        counted: Bytes = np.maximum(sizes, 0)
        return counted

    @property
    def end(self) -> int:
        """Return the moment after the last one."""
        return self.begin + len(self.low)

    def distance(self, above: Lifetime) -> int | None:
        """Return the bytes by which `above` must start behind this buffer if it lies above.

        None if the two never keep bytes at the same moment.
        """
        begin, end = max(self.begin, above.begin), min(self.end, above.end)
        if begin >= end:
            return None
        mine, other = (
            slice(begin - self.begin, end - self.begin),
            slice(begin - above.begin, end - above.begin),
        )
        both = (self.low[mine] < self.high[mine]) & (above.low[other] < above.high[other])
        if not both.any():
            return None
        distances = self.high[mine] - above.low[other]
        for moment, (behind, _) in self.over.get(above.buffer, {}).items():
            # What the call itself writes goes by its order: older bytes count, and later reads.
            distances[moment - begin] = max(
                behind,
                self._end(moment - 1) - above._start(moment),
                self._end(moment) - above._start(moment + 1),
            )
        for moment, (_, behind) in above.over.get(self.buffer, {}).items():
            distances[moment - begin] = max(
                behind,
                self._end(moment) - above._start(moment - 1),
                self._end(moment + 1) - above._start(moment),
            )
        # Further down it is the one below.
        return max(int(distances[both].max()), -above.size)

    def _start(self, moment: int) -> int:
        """Return the first byte that is kept at a moment."""
        at = moment - self.begin
        is_kept = 0 <= at < len(self.low) and self.low[at] < self.high[at]
        return int(self.low[at]) if is_kept else _FAR

    def _end(self, moment: int) -> int:
        """Return the byte behind the last one that is kept at a moment."""
        at = moment - self.begin
        is_kept = 0 <= at < len(self.low) and self.low[at] < self.high[at]
        return int(self.high[at]) if is_kept else -_FAR


def lifetimes(
    main: ir.PrimFunc,
    callees: Mapping[str, ir.PrimFunc] | None = None,
    inputs: Sequence[ir.Buffer] = (),
    outputs: Sequence[ir.Buffer] = (),
) -> tuple[Lifetime, ...]:
    """Return the lifetimes of the given ports, then of main's WORKSPACE buffers as allocated.

    Args:
        main: as the executor made it.
        callees: the layer functions by name: the rows that they declare, and the alignments that
            their parameters ask for.  Without them a call reads and writes all that it is given.
        inputs: parameters of main that the caller fills before the first call.
        outputs: parameters of main that the caller reads after the last call.

    Raises:
        MemoryPlanError: a buffer is allocated and never used, or its size is not constant.
    """
    callees = callees or {}
    own = [node.buffer for node in walk(main) if isinstance(node, ir.Allocate)]
    own = [buffer for buffer in own if buffer.scope is ir.Scope.WORKSPACE]
    steps, end = _steps(main, (*inputs, *outputs, *own))
    for buffer in inputs:
        steps[buffer].append(0)
    for buffer in outputs:
        steps[buffer].append(max(end - 1, 0))
    known = touches(main.body, callees, tuple(steps))
    needs = alignments(main, callees)
    # The caller reads an output after the last call: nothing takes its place.
    overs: dict[ir.Buffer, dict[ir.Buffer, Mapping[int, tuple[int, int]]]] = {}
    for (x, y), order in known.orders.items():
        if x not in outputs:
            overs.setdefault(y, {})[x] = order
    every = []
    for buffer, at in steps.items():
        if not at:
            raise MemoryPlanError(
                "workspace buffer is never used", where=f"{main.name}: {buffer.name}"
            )
        alignment = max(buffer.alignment, buffer.dtype.bytes, needs.get(buffer, 1))
        use = _Use(size_of(buffer), known.moments, buffer in inputs, buffer in outputs)
        begin, low, high = _extents(known.of[buffer], use)
        every.append(
            Lifetime(
                *(buffer, size_of(buffer), min(at), max(at), alignment, begin, low, high),
                overs.get(buffer, {}),
            )
        )
    by_buffer = {life.buffer: life for life in every}
    return tuple(
        replace(y, shared={x: _shared(by_buffer[x], y) for x in y.over}) if y.over else y
        for y in every
    )


def _shared(x: Lifetime, y: Lifetime) -> Bytes:
    """Return the most bytes that y keeps over those of x, at each moment of y."""
    shared: Bytes = np.zeros(len(y.low), np.int64)
    up, down = y.distance(x), x.distance(y)
    if up is None or down is None:
        return shared
    for moment in y.over[x.buffer]:
        at, of_x = moment - y.begin, moment - x.begin
        low, high = int(x.low[of_x]), int(x.high[of_x])
        most = max(int(y.high[at]) - up - low, high - down - int(y.low[at]), 0)
        shared[at] = min(most, high - low, int(y.high[at] - y.low[at]))
    return shared


def lower_bound(lives: Sequence[Lifetime]) -> int:
    """Return the bytes that no placement of these lifetimes can go below.

    The largest sum of what is kept at one moment, and the largest buffer.
    """
    total: Bytes = np.zeros(max((life.end for life in lives), default=0), np.int64)
    for life in lives:
        total[life.begin : life.end] += life.counted
    return max(int(total.max(initial=0)), max((life.size for life in lives), default=0))


def size_of(buffer: ir.Buffer) -> int:
    """Return the bytes of a buffer of constant shape.

    Raises:
        MemoryPlanError: an extent is a runtime integer.
    """
    extents = [extent for extent in buffer.shape if isinstance(extent, int)]
    if len(extents) != len(buffer.shape):
        raise MemoryPlanError(
            "a workspace buffer needs a constant shape", where=buffer.name, legal="integer extents"
        )
    return math.prod(extents) * buffer.dtype.bytes


@dataclass(frozen=True, slots=True)
class _Use:
    """Size of a buffer, number of moments, and whether the caller fills it or reads it."""

    size: int
    moments: int
    is_filled: bool
    is_read: bool


def _extents(touched: Sequence[Touch], use: _Use) -> tuple[int, Bytes, Bytes]:
    """Return the first moment, and from there to the last touch the extent that the buffer keeps.

    Touches count bytes as if every row had a place of its own; a ring's wrap around here.
    """
    size, moments = use.size, max(use.moments, 1)
    begin = 0 if use.is_filled else touched[0].moment
    end = moments if use.is_read else touched[-1].moment + 1 if touched else 1
    parts = _parts(touched, use)
    if parts is None:
        # Read before it is written, as far as is known here: all of it counts throughout.
        return begin, np.zeros(end - begin, np.int64), np.full(end - begin, size)
    low = np.full(end - begin, np.iinfo(np.int64).max)
    high: Bytes = np.zeros(end - begin, np.int64)
    for start, stop, first, last in parts:
        at = slice(first - begin, last + 1 - begin)
        low[at] = np.minimum(low[at], start)
        high[at] = np.maximum(high[at], stop)
    wraps = low // size != (high - 1) // size
    return (
        begin,
        np.where(high == 0, 0, np.where(wraps, 0, low % size)),
        np.where(high == 0, 0, np.where(wraps, size, (high - 1) % size + 1)),
    )


def _parts(touched: Sequence[Touch], use: _Use) -> list[tuple[int, int, int, int]] | None:
    """Return parts of a buffer with the first and last moment at which each is kept.

    Start, stop, moments.

    A call writes all that it declares, so that what a part held is dead from its last read on.
    None if something is read before it is written.
    """
    edges = np.array(sorted({0, use.size, *(t.start for t in touched), *(t.stop for t in touched)}))
    first = np.full(len(edges) - 1, 0 if use.is_filled else -1)
    last = np.full(len(edges) - 1, 0 if use.is_filled else -1)
    pieces: list[tuple[int, int, int, int]] = []

    def keep(parts: Sequence[int]) -> None:
        pieces.extend(
            (int(edges[n]), int(edges[n + 1]), int(first[n]), int(last[n])) for n in parts
        )

    for touch in sorted(touched, key=lambda t: (t.moment, not t.is_read)):
        low, high = np.searchsorted(edges, (touch.start, touch.stop))
        at = slice(low, high)
        if touch.is_read and (first[at] < 0).any():
            return None
        if touch.is_written and not touch.is_read:
            # What was there is overwritten: since its last use nothing had to be kept.
            keep((low + np.flatnonzero((first[at] >= 0) & (last[at] < touch.moment - 1))).tolist())
            first[at] = np.where(last[at] < touch.moment - 1, touch.moment, first[at])
            first[at] = np.where(first[at] < 0, touch.moment, first[at])
        last[at] = touch.moment
    if use.is_read:
        last[first >= 0] = max(use.moments - 1, 0)
    keep(np.flatnonzero(first >= 0).tolist())
    return pieces


def alignments(main: ir.PrimFunc, callees: Mapping[str, ir.PrimFunc]) -> Mapping[ir.Buffer, int]:
    """Return what the calls that name a buffer need of its address, in bytes."""
    needs: dict[ir.Buffer, int] = {}
    for node in invokes_of(main):
        params = callees[node.function].params if node.function in callees else ()
        for number, arg in enumerate(node.args):
            if isinstance(arg, ir.BufferView):
                param = params[number] if params else arg.buffer
                need = param.alignment if isinstance(param, ir.Buffer) else 1
                needs[arg.buffer] = max(needs.get(arg.buffer, 1), arg.dtype.bytes, need)
    return needs


def _steps(
    main: ir.PrimFunc, buffers: Iterable[ir.Buffer]
) -> tuple[dict[ir.Buffer, list[int]], int]:
    """Return steps of main between which each buffer is used, and how many steps there are."""
    used: dict[ir.Buffer, list[int]] = {buffer: [] for buffer in buffers}
    loops: list[tuple[int, int]] = []
    step = 0
    for node in walk(main):
        match node:
            case ir.For():
                loops.append((step, step + len(invokes_of(node))))
            case ir.If(ir.Load(buffer)) if buffer in used:
                used[buffer].append(step)
            case ir.Invoke(_, args):
                for arg in args:
                    if isinstance(arg, ir.BufferView) and arg.buffer in used:
                        used[arg.buffer].append(step)
                step += 1
            case ir.Store() | ir.KernelCall() | ir.ExternCall():
                raise MemoryPlanError(
                    f"main holds a {type(node).__name__}",
                    legal="Allocate, Seq, For, If, Let and Invoke: "
                    "computation belongs in functions",
                )
            case _:
                pass
    for begin, end in reversed(loops):  # inner ones first
        for steps in used.values():
            if any(begin <= at < end for at in steps):
                steps += [begin, end - 1]
    return used, step
