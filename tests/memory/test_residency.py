"""Which bytes a placement shows at which step: calls in line, and a nest that runs row by row."""

from __future__ import annotations

from itertools import pairwise

from microtir.config.enums import Placement
from microtir.dtype import DType
from microtir.memory.place import place
from microtir.memory.pools import Pool
from microtir.tir import build
from microtir.tir.function import RowRange
from microtir.tir.ir import (
    Allocate,
    Buffer,
    BufferView,
    For,
    IntImm,
    Invoke,
    Load,
    PrimFunc,
    RowAccess,
    Scope,
    Seq,
    Store,
    Var,
)
from microtir.tir.memory_plan import KeptBytes, MemoryPlan

ROWS = 4


def row_copy(name: str, slots_in: int, slots_out: int) -> PrimFunc:
    """Copies rows [y0, y1) of two bytes each between buffers of some row slots."""
    x, y = (Buffer(n, (slots, 2), DType.INT8) for n, slots in (("x", slots_in), ("y", slots_out)))
    y0, y1 = Var("y0", low=0, high=ROWS), Var("y1", low=0, high=ROWS)
    row, column = Var("row"), Var("column")
    source, target = (build.floormod(row, slots) for slots in (slots_in, slots_out))
    store = Store(y, (target, column), Load(x, (source, column)))
    body = For(row, y0, y1, For(column, IntImm(0), IntImm(2), store))
    access = RowAccess(1, 0, 1, ROWS)
    return PrimFunc(
        name, (x, y, y0, y1), body, row_range=RowRange(y0, y1), rows={x: access, y: access}
    )


def view(buffer: Buffer, slots: int) -> BufferView:
    """The rows of a buffer."""
    return BufferView(buffer, (slots, 2), DType.INT8)


def streamed() -> MemoryPlan:
    """Three copies in a nest through two rings of one row each, then one more copy."""
    source, target = (Buffer(n, (ROWS, 2), DType.INT8) for n in ("input", "output"))
    rings = [Buffer(f"ring{n}", (2,), DType.INT8, Scope.WORKSPACE) for n in range(2)]
    whole = Buffer("whole", (2 * ROWS,), DType.INT8, Scope.WORKSPACE)
    edges = [(source, ROWS), (rings[0], 1), (rings[1], 1), (whole, ROWS), (target, ROWS)]
    functions = [row_copy(f"f{i}", a[1], b[1]) for i, (a, b) in enumerate(_pairs(edges))]
    y = Var("y")
    rows = [(y, build.add(y, 1))] * 3 + [(IntImm(0), IntImm(ROWS))]
    calls = [
        Invoke(f.name, (view(*a), view(*b), *range_))
        for f, (a, b), range_ in zip(functions, _pairs(edges), rows, strict=True)
    ]
    body = Seq((For(y, IntImm(0), IntImm(ROWS), Seq(tuple(calls[:3]))), calls[3]))
    main = PrimFunc("main", (source, target), _allocated([*rings, whole], body), exported=True)
    return place(main, {f.name: f for f in functions}, [Pool()], Placement.GREEDY)[1]


def _pairs(edges: list[tuple[Buffer, int]]) -> list[tuple[tuple[Buffer, int], tuple[Buffer, int]]]:
    return list(pairwise(edges))


def _allocated(buffers: list[Buffer], body: Seq) -> Allocate | Seq:
    inner: Allocate | Seq = body
    for buffer in buffers:
        inner = Allocate(buffer, inner)
    return inner


def whole(step: int, size: int) -> KeptBytes:
    """All of a buffer at all calls of a step."""
    return KeptBytes(step, 0, size, (0, size), (0, size))


def test_a_ring_shows_at_the_calls_that_use_it() -> None:
    """A ring of a nest is in use at the calls that write and read it, not at the whole nest."""
    placements = {p.name: p for p in streamed().placements}
    assert (placements["ring0"].first_step, placements["ring0"].last_step) == (0, 2)
    assert placements["ring0"].kept_bytes == (whole(0, 2), whole(1, 2))
    assert placements["ring1"].kept_bytes == (whole(1, 2), whole(2, 2))


def test_rows_that_come_later_are_not_kept_yet() -> None:
    """A tensor that a nest fills keeps, before its last row, the rows that are there."""
    (filled,) = [p for p in streamed().placements if p.name == "whole"]
    assert filled.kept_bytes == (
        KeptBytes(0, 0, 6, (0, 2), (0, 6)),
        KeptBytes(1, 0, 6, (0, 2), (0, 6)),
        KeptBytes(2, 0, 8, (0, 2), (0, 8)),
        whole(3, 8),
    )


def test_the_peak_is_explained_byte_by_byte() -> None:
    """At the peak the bytes kept by all buffers add up to the lower bound."""
    plan = streamed()
    at_peak = {p.name: p.at_peak for p in plan.placements}
    assert (plan.pools[0].peak_step, at_peak) == (2, {"ring0": 0, "ring1": 2, "whole": 6})
    assert sum(at_peak.values()) == plan.lower_bound == 8
