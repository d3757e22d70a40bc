"""Distances by the order within calls: for every kernel, against a play of its accesses.

Three programs must agree: the planner's arrays (`memory.order`), the checker's Python
(`memory.trace`), and the play in this file, which goes through every turn of every loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.errors import MemoryPlanError
from microtir.graph.ir import Graph
from microtir.kernels import candidates
from microtir.memory.checker import check
from microtir.memory.lifetimes import Lifetime, lifetimes
from microtir.memory.place import relocate
from microtir.operators.common.rows import Extents
from microtir.plan.ir import PlannedOperator
from microtir.rewrite.reference import execute
from microtir.tir import build
from microtir.tir.analysis.bounds import Bounds
from microtir.tir.analysis.interval import Interval
from microtir.tir.analysis.regions import reach
from microtir.tir.interpreter import Interpreter
from microtir.tir.ir import (
    Allocate,
    Array,
    Buffer,
    BufferArgument,
    BufferView,
    Expr,
    For,
    If,
    IntImm,
    Invoke,
    KernelCall,
    KernelContract,
    Let,
    Load,
    PrimFunc,
    Scope,
    Select,
    Seq,
    Stmt,
    Store,
    Var,
)
from microtir.tir.visitor import Node, Rewriter, buffers_read, children, rewrite_function
from tests.support.kernel_cases import CONFIGS, M3, emitted, found
from tests.support.operator_cases import OPERATORS, generate

PLAIN = [
    "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "AVERAGE_POOL_2D", "MAX_POOL_2D", "ADD",
    "MUL", "RELU", "LEAKY_RELU", "TRANSPOSE", "PAD", "STRIDED_SLICE", "RESIZE_NEAREST_NEIGHBOR",
    "SOFTMAX", "QUANTIZE", "DEQUANTIZE",
]  # fmt: skip
TURNS = 60_000  # of a play: more would take too long


@dataclass(frozen=True)
class Access:
    """Bytes [first, stop) of a parameter that are read or written."""

    is_write: bool
    param: Buffer
    first: int
    stop: int


class Player:
    """Goes through a body turn by turn; a micro-kernel writes all of its regions first."""

    def __init__(self, function: PrimFunc, scalars: Sequence[int]) -> None:
        self.params = [p for p in function.params if isinstance(p, Buffer)]
        self.bounds = Bounds()
        variables = [p for p in function.params if isinstance(p, Var)]
        for var, value in zip(variables, scalars, strict=True):
            self.bounds.ranges[var] = Interval(value, value)
        self.turns = 0

    def play(self, s: Stmt) -> Iterator[Access]:
        self.turns += 1
        if self.turns > TURNS:
            raise TimeoutError
        match s:
            case Seq(statements):
                for inner in statements:
                    yield from self.play(inner)
            case For(var, start, stop, body):
                yield from self.loads(start, stop)
                for value in range(self.value(start), self.value(stop)):
                    self.bounds.ranges[var] = Interval(value, value)
                    yield from self.play(body)
            case Let(var, value, body):
                yield from self.loads(value)
                if value.dtype.is_int:
                    self.bounds.ranges[var] = self.bounds.of(value)
                yield from self.play(body)
            case If(condition, then, otherwise):
                yield from self.loads(condition)
                known = self.bounds.of(condition)
                for branch, taken in ((then, known.high), (otherwise, not known.low)):
                    if taken and branch is not None:
                        yield from self.play(branch)
            case Allocate(_, body):
                yield from self.play(body)
            case Store(buffer, indices, value):
                yield from self.loads(*indices, value)
                yield from self.access(buffer, indices, (0, 1), is_write=True)
            case KernelCall():
                given = dict(zip(s.meaning.params, s.args, strict=True))
                for is_write, regions in ((True, s.contract.writes), (False, s.contract.reads)):
                    for region in regions:
                        arg = given[region.buffer]
                        assert isinstance(arg, BufferArgument)
                        span = reach(region, given)
                        yield from self.access(arg.buffer, arg.indices, span, is_write=is_write)
            case _:
                raise AssertionError(s)

    def value(self, e: Expr) -> int:
        known = self.bounds.of(e)
        assert known.is_point
        return known.low

    def loads(self, *items: Node) -> Iterator[Access]:
        for item in items:
            match item:
                case Select(condition, then, otherwise):
                    yield from self.loads(condition)
                    known = self.bounds.of(condition)
                    if known.high:
                        yield from self.loads(then)
                    if not known.low:
                        yield from self.loads(otherwise)
                case Load(buffer, indices):
                    yield from self.loads(*indices)
                    yield from self.access(buffer, indices, (0, 1), is_write=False)
                case _:
                    yield from self.loads(*children(item))

    def access(
        self, buffer: Buffer, indices: Sequence[Expr], span: tuple[int, int], *, is_write: bool
    ) -> Iterator[Access]:
        if buffer not in self.params:
            return
        first = last = 0
        for index, extent in zip(indices, buffer.shape, strict=True):
            known = self.bounds.of(index)
            assert isinstance(extent, int)
            first = first * extent + max(known.low, 0)
            last = last * extent + min(known.high, extent - 1)
        size = buffer.dtype.bytes
        yield Access(is_write, buffer, (first + span[0]) * size, (last + span[1]) * size)


def played(function: PrimFunc, calls: Sequence[Sequence[int]]) -> list[Access]:
    """The accesses of calls, in order."""
    accesses: list[Access] = []
    for scalars in calls:
        accesses += Player(function, scalars).play(function.body)
    return accesses


def is_safe(accesses: Sequence[Access], starts: Mapping[Buffer, int]) -> bool:
    """Whether nobody reads a byte of an input behind a write to it, nor loses one of the output."""
    shift = min(starts.values())
    size = max(start - shift + size_of(p) for p, start in starts.items())
    owners = np.full(size, -1)
    numbers = {p: n for n, p in enumerate(starts)}
    for access in accesses:
        if access.param not in starts:
            continue
        number, base = numbers[access.param], starts[access.param] - shift
        part = owners[base + access.first : base + access.stop]
        if access.is_write:
            part[:] = number
        elif ((part != -1) & (part != number)).any():
            return False
    return True


def is_read(accesses: Sequence[Access], x: Buffer) -> bool:
    """Whether every byte of a parameter is."""
    seen = np.zeros(size_of(x), np.bool_)
    for access in accesses:
        if access.param is x:
            seen[access.first : access.stop] = True
    return bool(seen.all())


def size_of(buffer: Buffer) -> int:
    """Bytes of a buffer."""
    return int(np.prod([d for d in buffer.shape if isinstance(d, int)])) * buffer.dtype.bytes


def moved(name: str, buffer: Buffer, *, is_written: bool) -> PrimFunc:
    """Fills a buffer, or reads all of it."""
    i, flat = Var("i"), Buffer("b", (size_of(buffer) // buffer.dtype.bytes,), buffer.dtype)
    other = Buffer("o", flat.shape, buffer.dtype)
    pair = (flat, other) if is_written else (other, flat)
    store = Store(pair[0], (i,), Load(pair[1], (i,)))
    return PrimFunc(name, (flat, other), For(i, IntImm(0), build.index(flat.shape[0]), store))


class Layer:
    """A function whose inputs are filled before its calls and whose output is read after them."""

    def __init__(self, function: PrimFunc, calls: Sequence[Sequence[int]]) -> None:
        self.function, self.calls = function, calls
        params = [p for p in function.params if isinstance(p, Buffer)]
        self.held = {
            p: Buffer(p.name, (size_of(p),), DType.UINT8, Scope.WORKSPACE, alignment=p.dtype.bytes)
            for p in params
        }
        self.outside = {
            p: Buffer(f"{p.name}_apart", tuple(d for d in p.shape if isinstance(d, int)), p.dtype)
            for p in params
        }
        *self.inputs, self.output = [p for p in params if p is not function.scratch]
        self.callees = {function.name: function}
        self.main = self._main()

    def _main(self) -> PrimFunc:
        statements: list[Stmt] = []
        for number, p in enumerate((*self.inputs, self.output)):
            helper = moved(f"move{number}", p, is_written=p is not self.output)
            self.callees[helper.name] = helper
            (shape,) = helper.params[0].shape  # type: ignore[union-attr]
            assert isinstance(shape, int)
            views = [BufferView(b, (shape,), p.dtype) for b in (self.held[p], self.outside[p])]
            statements.append(Invoke(helper.name, tuple(views)))
        made = [Invoke(self.function.name, self._arguments(scalars)) for scalars in self.calls]
        statements[-1:-1] = made
        body: Stmt = Seq(tuple(statements))
        for p in reversed(self.held):
            body = Allocate(self.held[p], body)
        kept = [self.outside[p] for p in (*self.inputs, self.output)]
        return PrimFunc("main", tuple(kept), body)

    def _arguments(self, scalars: Sequence[int]) -> tuple[BufferView | Expr, ...]:
        views = (
            BufferView(self.held[p], tuple(d for d in p.shape if isinstance(d, int)), p.dtype)
            for p in self.function.params
            if isinstance(p, Buffer)
        )
        return (*views, *(IntImm(value) for value in scalars))

    def lives(self) -> dict[Buffer, Lifetime]:
        """Of each parameter."""
        known = {life.buffer: life for life in lifetimes(self.main, self.callees)}
        return {p: known[b] for p, b in self.held.items()}

    def is_accepted(self, starts: Mapping[Buffer, int]) -> bool:
        """Whether the checker takes these places; the other parameters lie behind them."""
        end = max(start + size_of(p) for p, start in starts.items())
        spots = {self.held[p]: (0, start) for p, start in starts.items()}
        for p, b in self.held.items():
            if p not in starts:
                spots[b] = (0, -(-end // 8) * 8)
                end = spots[b][1] + size_of(p)
        block = Buffer("workspace", (end,), DType.UINT8, alignment=8)
        try:
            check(self.main, relocate(self.main, [block], spots), self.callees, [end])
        except MemoryPlanError:
            return False
        return True


def row_calls(operator: PlannedOperator, form: int) -> list[tuple[int, ...]]:
    """All rows at once, row by row, or from the last row to the first."""
    rows = operator.node.output.type.rows
    single = [(y, y + 1) for y in range(rows)]
    return [[(0, rows)], single, single[::-1]][form]  # type: ignore[return-value]


def images_of(operator: PlannedOperator) -> int:
    """Return the images of a tensor, of which each begins where its own rows do."""
    return max(Extents.of(t.type).images for t in (*operator.inputs, operator.node.output))


def examine(layer: Layer, images: int = 1) -> bool:
    """Compare all three; whether an output may lie over an input at all."""
    accesses = played(layer.function, layer.calls)
    lives, y, partly = layer.lives(), layer.output, False
    for x in layer.inputs:
        need = max(x.dtype.bytes, y.dtype.bytes, x.alignment, y.alignment)
        for low, high in ((y, x), (x, y)):
            distance = lives[low].distance(lives[high])
            assert distance is not None
            rounded = -(-distance // need) * need
            for gap in (distance, rounded):
                assert is_safe(accesses, {low: 0, high: gap})
            kinds = {x.dtype, y.dtype} - {DType.INT8, DType.UINT8}
            if len(kinds) > 1:  # for a C compiler they do not share memory
                continue
            # Between calls rows are kept whole, the columns that no window reaches, too.
            # Of several images one range of rows stands for windows that begin anew with each.
            is_exact = (len(layer.calls) == 1 or is_read(accesses, x)) and images == 1
            # Blocks of int16 convolutions are kept farther apart than they need.
            is_exact = is_exact and y.dtype is not DType.INT16
            if is_exact and distance > -size_of(high):
                assert not is_safe(accesses, {low: 0, high: distance - 1})
            base = -(-size_of(high) // need) * need + need
            assert layer.is_accepted({low: base, high: base + rounded})
            nearer = {low: base, high: base + rounded - need}
            assert layer.is_accepted(nearer) == is_safe(accesses, nearer)
            partly |= distance < size_of(low)
    return partly


@pytest.mark.parametrize("kernel", CONFIGS)
def test_kernels_around_register_blocks(kernel: str) -> None:
    """The distance is safe, rounded up, too, and one byte less is not; whatever the calls are."""
    partly = 0
    for number, (_, operator) in enumerate(found(kernel, 6)):
        layer = Layer(emitted(operator, {}), row_calls(operator, number % 3))
        partly += examine(layer, images_of(operator))
    assert partly


def plain(operator: str, seed: int, dtype: str) -> PlannedOperator | None:
    """A random operator with the first kernel that is plain loops."""
    graph: Graph = generate(operator, seed, dtype).graph()
    if len(graph.nodes) != 1 or len(graph.nodes[0].outputs) != 1:
        return None
    offered = [
        c
        for c in candidates(graph.nodes[0], M3)
        if not c.is_view and not c.accumulates and c.is_plain
    ]
    direct = [c for c in offered if c.kernel in ("direct", "table", "copy")]
    return PlannedOperator(graph.nodes[0], direct[0]) if direct else None


@pytest.mark.parametrize("operator", PLAIN)
def test_kernels_of_plain_loops(operator: str) -> None:
    """The same for loops without micro-kernels, in every element type of the operator."""
    examined = 0
    dtypes = OPERATORS[operator].dtypes
    for seed in range(4):
        for dtype in dtypes:
            planned = plain(operator, seed, dtype)
            if planned is None or not planned.inputs:
                continue
            function = emitted(planned, {})
            takes_rows = planned.candidate.takes_row_range
            try:
                calls = row_calls(planned, seed % 3) if takes_rows else [()]
                examine(Layer(function, calls), images_of(planned))
            except TimeoutError:
                continue
            examined += 1
    assert examined


def _stored(s: Stmt, buffer: Buffer) -> int | None:
    """How many elements are stored, if no loop of another number of turns is around a store."""
    match s:
        case Store(stored):
            return int(stored is buffer)
        case For(_, IntImm(first), IntImm(stop), body):
            count = _stored(body, buffer)
            return count and (stop - first) * count
        case For():
            return None if _stored(s.body, buffer) else 0
        case _:
            counts = [_stored(part, buffer) for part in children(s) if isinstance(part, Stmt)]
            return None if None in counts else sum(filter(None, counts))


class Poison(Rewriter):
    """Has everything that a micro-kernel writes overwritten before it reads anything."""

    def stmt(self, s: Stmt) -> Stmt:
        if not isinstance(s, KernelCall):
            return self.stmt_parts(s)
        given = dict(zip(s.meaning.params, s.args, strict=True))
        calls: list[Stmt] = [s]
        for region in s.contract.writes:
            first, stop = reach(region, given)
            arg = given[region.buffer]
            assert isinstance(arg, BufferArgument) and first == 0
            y, i = Buffer("y", (stop,), arg.buffer.dtype), Var("i")
            body = For(i, IntImm(0), IntImm(stop), Store(y, (i,), IntImm(0x55, y.dtype)))
            meaning = PrimFunc(f"poison_{stop}_{y.dtype.value}", (y,), body)
            contract = KernelContract((), (replace(region, buffer=y, start=(IntImm(0),),
                                                   extent=(stop,)),))  # fmt: skip
            # What accumulates there, is written in part, or is no int8, is left alone.
            is_whole = all(isinstance(begin, IntImm) for begin in region.start)
            count = _stored(s.meaning.body, region.buffer)
            is_whole &= count is None or count >= stop
            accumulates = region.buffer in buffers_read(s.meaning)
            if arg.buffer.dtype is DType.INT8 and is_whole and not accumulates:
                calls.insert(0, KernelCall(meaning, (arg,), contract))
        return Seq(tuple(calls))


@pytest.mark.parametrize("kernel", CONFIGS)
def test_executed_over_each_other(kernel: str) -> None:
    """At the distance the layer gives the reference's output, though its blocks are poisoned."""
    for number, (given, operator) in enumerate(found(kernel, 6)):
        function = emitted(operator, {})
        calls = row_calls(operator, number % 3)
        layer = Layer(function, calls)
        lives, y = layer.lives(), layer.output
        machine = Interpreter([rewrite_function(function, Poison())])
        want = execute(given.graph, given.named_inputs())["y"]
        for x, data in zip(layer.inputs, given.inputs, strict=True):
            for low, high in ((y, x), (x, y)):
                distance = lives[low].distance(lives[high])
                assert distance is not None
                memory = np.full(2 * (size_of(x) + size_of(y)) + abs(distance), 0x55, np.int8)
                base = size_of(high)
                starts = {low: base, high: base + distance}
                parts = {
                    p: memory[at : at + size_of(p)].view(p.dtype.value) for p, at in starts.items()
                }
                parts[x][:] = data.reshape(-1)
                arrays: list[Array] = []
                for p in function.params:
                    if isinstance(p, Buffer):
                        shape = tuple(d for d in p.shape if isinstance(d, int))
                        if p in parts:
                            arrays.append(parts[p].reshape(shape))
                        elif p is function.scratch:
                            arrays.append(np.full(shape, 77, p.dtype.value))
                        else:
                            other = given.inputs[layer.inputs.index(p)]
                            arrays.append(other.reshape(shape).copy())
                for scalars in calls:
                    machine.run("layer", [*arrays, *scalars])
                np.testing.assert_array_equal(parts[y].reshape(want.shape), want, given.name)
