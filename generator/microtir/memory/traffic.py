"""Counts how often main reads and writes each buffer: an estimate to choose between memories.

Every call of main is counted with the loops of its layer.  Bounds that depend on outer loops
(windows that are clipped at a border) count at their widest, both branches of a condition count,
and a micro-kernel counts the regions that it declares.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from microtir.tir.analysis.bounds import Bounds
from microtir.tir.analysis.interval import Interval
from microtir.tir.analysis.regions import regions
from microtir.tir.execution import calls
from microtir.tir.ir import Buffer, BufferView, Expr, For, Invoke, Let, Load, PrimFunc, Store, Var
from microtir.tir.visitor import walk
from microtir.tir.walker import Call, StatementWalker


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that one run reads from a buffer, and bytes that it writes to it."""

    read: int = 0
    written: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(self.read + other.read, self.written + other.written)

    @property
    def bytes(self) -> int:
        return self.read + self.written


NONE = Traffic()

Move: TypeAlias = tuple[Buffer, Traffic]

Array = TypeVar("Array")
"""Key that is equal for buffers that hold the same constants."""


def traffic(
    main: PrimFunc, callees: Mapping[str, PrimFunc], buffers: Sequence[Buffer]
) -> Mapping[Buffer, Traffic]:
    """Count the bytes that a run of `main` moves from and to each of `buffers`."""
    total = dict.fromkeys(buffers, NONE)
    for call, callee, moved in _calls(main, callees):
        for argument, parameter in zip(call.args, callee.params, strict=True):
            if isinstance(argument, BufferView) and argument.buffer in total:
                assert isinstance(parameter, Buffer)
                total[argument.buffer] += moved.get(parameter, NONE)
    return total


def constant_reads(
    main: PrimFunc | None, callees: Mapping[str, PrimFunc], arrays: Mapping[Buffer, Array]
) -> Mapping[Array, int]:
    """Count the bytes that a run of `main` reads from the arrays of constants of its callees."""
    total = dict.fromkeys(arrays.values(), 0)
    for _, _, moved in _calls(main, callees) if main is not None else ():
        for buffer, bytes_ in moved.items():
            if buffer in arrays:
                total[arrays[buffer]] += bytes_.read
    return total


def _calls(
    main: PrimFunc, callees: Mapping[str, PrimFunc]
) -> Iterator[tuple[Invoke, PrimFunc, Mapping[Buffer, Traffic]]]:
    """Yield each call of main with its callee, and what that moves from and to its own buffers."""
    known: dict[tuple[str, tuple[int, ...]], Mapping[Buffer, Traffic]] = {}
    for call, scalars in calls(main.body):
        callee = callees.get(call.function)
        if callee is not None:
            key = callee.name, scalars
            if key not in known:
                known[key] = _of_call(callee, scalars)
            yield call, callee, known[key]


def _of_call(function: PrimFunc, scalars: Sequence[int]) -> Mapping[Buffer, Traffic]:
    variables = [p for p in function.params if isinstance(p, Var)]
    values = zip(variables, scalars, strict=True)
    counter = _Counter(Bounds({var: Interval(value, value) for var, value in values}))
    moved: dict[Buffer, Traffic] = {}
    for buffer, part in counter.statement(function.body, 1):
        moved[buffer] = moved.get(buffer, NONE) + part
    return moved


class _Counter(StatementWalker[int, Move]):
    """Yields what each part of a body moves, of which is known how often it is executed."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds

    def loop(self, s: For, known: int) -> Iterator[Move]:
        first, last = self.bounds.of(s.start).low, self.bounds.of(s.stop).high - 1
        if first <= last:
            self.bounds.ranges[s.var] = Interval(first, last)
            yield from self.statement(s.body, known * (last - first + 1))

    def inside_let(self, s: Let, known: int) -> int:
        if not s.value.dtype.is_float:
            self.bounds.ranges[s.var] = self.bounds.of(s.value)
        return known

    def reads(self, items: Sequence[Expr], known: int) -> Iterator[Move]:
        for item in items:
            for node in walk(item):
                if isinstance(node, Load):
                    yield node.buffer, Traffic(read=known * node.buffer.dtype.bytes)

    def store(self, s: Store, known: int) -> Iterator[Move]:
        yield s.buffer, Traffic(written=known * s.buffer.dtype.bytes)

    def call(self, s: Call, known: int) -> Iterator[Move]:
        if not isinstance(s, Invoke):
            for argument, region, is_write in regions(s):
                size = math.prod(region.extent) * region.buffer.dtype.bytes * known
                yield argument.buffer, Traffic(written=size) if is_write else Traffic(read=size)
