"""Distances between an input that dies and the output that is written over it, by brute force."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.dtype import DType
from microtir.errors import MemoryPlanError
from microtir.memory.checker import check
from microtir.memory.lifetimes import lifetimes
from microtir.memory.place import relocate
from microtir.tir import build
from microtir.tir.function import RowRange
from microtir.tir.ir import (
    Allocate,
    Buffer,
    BufferView,
    Expr,
    For,
    IntImm,
    Invoke,
    Load,
    PrimFunc,
    RowAccess,
    Scope,
    Seq,
    Stmt,
    Store,
    Var,
)


@dataclass(frozen=True)
class Layer:
    """Output row y reads the input rows [y*stride - before, +taps) that the image has."""

    height: int
    taps: int
    stride: int
    before: int
    row_in: int
    row_out: int

    @property
    def rows(self) -> int:
        return (self.height + 2 * self.before - self.taps) // self.stride + 1


layers = (
    st.builds(
        Layer, st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), st.integers(0, 2),
        st.integers(1, 9), st.integers(1, 9),
    )
    .filter(lambda layer: layer.before < layer.taps and layer.rows >= 1)
)  # fmt: skip


def fill(height: int, row: int) -> PrimFunc:
    """Writes a whole tensor."""
    x, i, j = Buffer("x", (height, row), DType.INT8), Var("i"), Var("j")
    store: Stmt = Store(x, (i, j), IntImm(1, DType.INT8))
    body = For(i, IntImm(0), IntImm(height), For(j, IntImm(0), IntImm(row), store))
    return PrimFunc("fill", (x,), body)


def window(layer: Layer) -> PrimFunc:
    """Sums nothing: reads every element of the window and writes every element of the row."""
    x = Buffer("x", (layer.height, layer.row_in), DType.INT8)
    y = Buffer("y", (layer.rows, layer.row_out), DType.INT8)
    y0, y1 = (Var(name, low=0, high=layer.rows) for name in ("y0", "y1"))
    row, tap, i, j = Var("row"), Var("tap"), Var("i"), Var("j")
    origin = build.sub(build.mul(row, layer.stride), layer.before)
    begin = build.maximum(build.neg(origin), 0)
    end = build.minimum(build.sub(layer.height, origin), layer.taps)
    store: Stmt = Store(y, (row, j), Load(x, (build.add(origin, tap), i)))
    for var, first, last in (
        (j, build.index(0), build.index(layer.row_out)),
        (i, build.index(0), build.index(layer.row_in)),
        (tap, begin, end), (row, y0, y1),
    ):  # fmt: skip
        store = For(var, first, last, store)
    rows = {
        x: RowAccess(layer.stride, -layer.before, layer.taps, layer.height),
        y: RowAccess(1, 0, 1, layer.rows),
    }
    return PrimFunc("window", (x, y, y0, y1), store, row_range=RowRange(y0, y1), rows=rows)


def take(rows: int, row: int) -> PrimFunc:
    """Reads a whole tensor into the caller's byte."""
    y, out = Buffer("y", (rows, row), DType.INT8), Buffer("out", (1,), DType.INT8)
    i, j = Var("i"), Var("j")
    store: Stmt = Store(out, (IntImm(0),), Load(y, (i, j)))
    body = For(i, IntImm(0), IntImm(rows), For(j, IntImm(0), IntImm(row), store))
    return PrimFunc("take", (y, out), body)


def program(
    layer: Layer, backward: bool = False
) -> tuple[PrimFunc, dict[str, PrimFunc], Buffer, Buffer]:
    """Fill x, then y row by row from x, from its first row or from its last, then read y."""
    x = Buffer("x", (layer.height, layer.row_in), DType.INT8, Scope.WORKSPACE)
    y = Buffer("y", (layer.rows, layer.row_out), DType.INT8, Scope.WORKSPACE)
    out, row = Buffer("out", (1,), DType.INT8), Var("r")
    rows: tuple[Expr, Expr] = (row, build.add(row, 1))
    if backward:
        rows = build.sub(layer.rows - 1, row), build.sub(layer.rows, row)
    calls = (
        Invoke("fill", (view(x),)),
        For(row, IntImm(0), IntImm(layer.rows), Invoke("window", (view(x), view(y), *rows))),
        Invoke("take", (view(y), view(out))),
    )
    main = PrimFunc("main", (out,), Allocate(x, Allocate(y, Seq(calls))))
    functions = (fill(layer.height, layer.row_in), window(layer), take(layer.rows, layer.row_out))
    return main, {f.name: f for f in functions}, x, y


def view(buffer: Buffer) -> BufferView:
    """All of a buffer."""
    return BufferView(buffer, tuple(d for d in buffer.shape if isinstance(d, int)), buffer.dtype)


def is_safe(layer: Layer, distance: int) -> bool:
    """Play it on a list of bytes, an element at a time."""
    bottom = max(0, -distance)
    memory: dict[int, tuple[str, int]] = {}
    for byte in range(layer.height * layer.row_in):
        memory[bottom + distance + byte] = ("x", byte)
    for y in range(layer.rows):
        first = max(y * layer.stride - layer.before, 0)
        last = min(y * layer.stride - layer.before + layer.taps, layer.height)
        for row, i, j in product(range(first, last), range(layer.row_in), range(layer.row_out)):
            byte = row * layer.row_in + i
            if memory[bottom + distance + byte] != ("x", byte):
                return False
            memory[bottom + y * layer.row_out + j] = ("y", y * layer.row_out + j)
    return all(memory[bottom + b] == ("y", b) for b in range(layer.rows * layer.row_out))


@settings(deadline=None, max_examples=300)
@given(layers, st.sampled_from([1, 4, 16]))
def test_the_distance_is_safe_and_one_byte_less_is_not(layer: Layer, alignment: int) -> None:
    """Input above output: D, rounded up or not, keeps every byte; D - 1 loses one."""
    main, callees, x, y = program(layer)
    lives = {life.buffer: life for life in lifetimes(main, callees)}
    distance = lives[y].distance(lives[x])
    assert distance is not None
    rounded = -(-distance // alignment) * alignment
    assert is_safe(layer, distance) and is_safe(layer, rounded)
    if distance > -lives[x].size:  # further down x is the one below
        assert not is_safe(layer, distance - 1)


@settings(deadline=None, max_examples=150)
@given(layers, st.booleans())
def test_the_checker_agrees_with_the_distance(layer: Layer, backward: bool) -> None:
    """The checker accepts the distance and refuses one byte less, in both directions."""
    main, callees, x, y = program(layer, backward)
    lives = {life.buffer: life for life in lifetimes(main, callees)}
    below, above = (x, y) if backward else (y, x)
    distance = lives[below].distance(lives[above])
    assert distance is not None
    for less in (0, 1):
        shift = max(0, less - distance)
        offsets = {below: shift, above: shift + distance - less}
        size = max(offsets[b] + life.size for b, life in lives.items())
        spots = {buffer: (0, offset) for buffer, offset in offsets.items()}
        placed = relocate(main, [Buffer("workspace", (size,), DType.UINT8)], spots)
        if less and distance > -lives[above].size:
            with pytest.raises(MemoryPlanError, match=r"read but another|over another argument"):
                check(main, placed, callees, [size])
        else:
            check(main, placed, callees, [size])
