"""Counts how often main reads and writes each buffer: an estimate to choose between memories.

Every call of main is counted with the loops of its layer.  Bounds that depend on outer loops
(windows that are clipped at a border) count at their widest, both branches of a condition count,
and a micro-kernel counts the regions that it declares.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from microtir.memory.moments import calls
from microtir.tir.analysis.bounds import Bounds
from microtir.tir.analysis.interval import Interval
from microtir.tir.ir import (
    Allocate,
    Buffer,
    BufferArgument,
    BufferView,
    Expr,
    ExternCall,
    For,
    If,
    Invoke,
    KernelCall,
    Let,
    Load,
    PrimFunc,
    Region,
    Seq,
    Stmt,
    Store,
    Var,
)
from microtir.tir.visitor import walk


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
    for call, scalars in calls(main.body, Bounds()):
        callee = callees.get(call.function)
        if callee is not None:
            key = callee.name, scalars
            if key not in known:
                known[key] = _of_call(callee, scalars)
            yield call, callee, known[key]


def _of_call(function: PrimFunc, scalars: Sequence[int]) -> Mapping[Buffer, Traffic]:
    counter = _Counter()
    variables = [p for p in function.params if isinstance(p, Var)]
    values = zip(variables, scalars, strict=True)
    counter.bounds.ranges.update({var: Interval(value, value) for var, value in values})
    counter.stmt(function.body, 1)
    return counter.found


class _Counter:
    """Visits a body with the number of times that each part of it is executed."""

    def __init__(self) -> None:
        self.bounds = Bounds()
        self.found: dict[Buffer, Traffic] = {}

    def stmt(self, s: Stmt, times: int) -> None:
        match s:
            case Seq(statements):
                for inner in statements:
                    self.stmt(inner, times)
            case For(var, start, stop, body):
                self.loads((start, stop), times)
                first, last = self.bounds.of(start).low, self.bounds.of(stop).high - 1
                if first <= last:
                    self.bounds.ranges[var] = Interval(first, last)
                    self.stmt(body, times * (last - first + 1))
            case Let(var, value, body):
                self.loads((value,), times)
                if not value.dtype.is_float:
                    self.bounds.ranges[var] = self.bounds.of(value)
                self.stmt(body, times)
            case If(condition, then, otherwise):
                self.loads((condition,), times)
                self.stmt(then, times)
                if otherwise is not None:
                    self.stmt(otherwise, times)
            case Allocate(_, body):
                self.stmt(body, times)
            case Store(buffer, indices, value):
                self.loads((*indices, value), times)
                self.note(buffer, Traffic(written=times * buffer.dtype.bytes))
            case KernelCall():
                self.kernel(s, times)
            case ExternCall():
                self.extern(s, times)
            case _:
                pass

    def loads(self, items: Sequence[Expr], times: int) -> None:
        for item in items:
            for node in walk(item):
                if isinstance(node, Load):
                    self.note(node.buffer, Traffic(read=times * node.buffer.dtype.bytes))

    def kernel(self, s: KernelCall, times: int) -> None:
        arguments = dict(zip(s.meaning.params, s.args, strict=True))
        for region in s.contract.reads:
            self.argument(arguments[region.buffer], Traffic(read=_bytes(region) * times))
        for region in s.contract.writes:
            self.argument(arguments[region.buffer], Traffic(written=_bytes(region) * times))

    def extern(self, s: ExternCall, times: int) -> None:
        for parameter, argument in zip(s.function.params, s.args, strict=True):
            if isinstance(parameter, Buffer):
                extents = (extent for extent in parameter.shape if isinstance(extent, int))
                size = math.prod(extents) * parameter.dtype.bytes * times
                is_read, is_written = parameter in s.function.reads, parameter in s.function.writes
                self.argument(argument, Traffic(size * is_read, size * is_written))

    def argument(self, argument: object, moved: Traffic) -> None:
        if isinstance(argument, BufferArgument):
            self.note(argument.buffer, moved)

    def note(self, buffer: Buffer, moved: Traffic) -> None:
        self.found[buffer] = self.found.get(buffer, NONE) + moved


def _bytes(region: Region) -> int:
    return math.prod(region.extent) * region.buffer.dtype.bytes
