"""The loops of macro-kernels compute each pixel of a row range once; blocks that overlap, again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pytest

from microtir import te
from microtir.dtype import DType
from microtir.kernels.common.macro_kernel import (
    Count,
    Pixel,
    Some,
    all_blocks,
    lines,
    over_line,
    over_row,
)
from microtir.kernels.common.macro_kernel import over_rows as blocks_of_rows
from microtir.kernels.common.statements import load, loop, store
from microtir.operators.common.rows import Extents
from microtir.plan.ir import Calls
from microtir.tir import ir
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.interpreter import Interpreter
from microtir.tir.passes import Simplify
from microtir.tir.verify import verify
from tests.support.seeds import seeds

ROWS, WIDEST = 6, 23
ONE = Count(1, "pixel")

Loops = Callable[[te.Expr, te.Expr, int, Sequence[Count], Some], ir.Stmt]


def over_rows(y0: te.Expr, y1: te.Expr, width: int, counts: Sequence[Count], some: Some) -> ir.Stmt:
    """The rows of a range that do not follow each other."""
    return loop("row", y0, y1, lambda row: over_row(row, width, counts, some))


def computed(
    loops: Loops, width: int, counts: Sequence[Count], rows: tuple[int, int]
) -> tuple[npt.NDArray[np.int32], set[int]]:
    """How often each pixel of `ROWS` rows is computed, and by blocks of how many pixels."""
    y, sizes = ir.Buffer("y", (ROWS, width), DType.INT32), set()
    y0, y1 = (te.var(name, low=0, high=ROWS) for name in ("y0", "y1"))

    def some(first: Pixel, count: int) -> ir.Stmt:
        sizes.add(count)

        def once(n: te.Expr) -> ir.Stmt:
            pixel = first.ahead(n)
            return store(y, (pixel.row, pixel.column), load(y, pixel.row, pixel.column) + 1)

        return loop("n", 0, count, once)

    body = loops(y0, y1, width, counts, some)
    function = Simplify()(ir.PrimFunc("loops", (y, y0.var, y1.var), body))
    verify(function)
    times = np.zeros((ROWS, width), np.int32)
    Interpreter([function]).run("loops", [times, *rows])
    return times, sizes


def ranges(rng: np.random.Generator) -> list[tuple[int, int]]:
    """No row, all rows, and some of them."""
    first, stop = sorted(rng.integers(0, ROWS + 1, 2).tolist())
    return [(3, 3), (4, 2), (0, ROWS), (first, stop)]


@pytest.mark.parametrize(("first", "stop"), [(3, 3), (4, 2), (0, ROWS), (1, 4), (2, 3)])
def test_rows_are_taken_together(first: int, stop: int) -> None:
    """Every other row of a range begins a block, also the last one of an odd number."""
    y = ir.Buffer("y", (ROWS,), DType.INT32)
    y0, y1 = (te.var(name, low=0, high=ROWS) for name in ("y0", "y1"))
    body = blocks_of_rows(y0, y1, 2, lambda row: store(y, (row,), 1))
    function = Simplify()(ir.PrimFunc("loops", (y, y0.var, y1.var), body))
    verify(function)
    prove_accesses(function)
    begun = np.zeros(ROWS, np.int32)
    Interpreter([function]).run("loops", [begun, first, stop])
    assert np.flatnonzero(begun).tolist() == list(range(first, stop, 2))


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds(0, 12))
@pytest.mark.parametrize("loops", [over_rows, over_line])
def test_each_pixel_of_a_row_range_is_computed_once(loops: Loops, seed: int) -> None:
    """Whatever the width, by counts of which the last is 1."""
    rng = np.random.default_rng(seed)
    width = int(rng.integers(1, WIDEST))
    drawn = {int(n) for n in rng.integers(2, 9, int(rng.integers(0, 3)))}
    larger = [Count(n, f"block{n}") for n in sorted(drawn, reverse=True)]
    for rows in ranges(rng):
        times, sizes = computed(loops, width, [*larger, ONE], rows)
        want = np.zeros((ROWS, width), np.int32)
        want[slice(*rows)] = 1
        np.testing.assert_array_equal(times, want, err_msg=f"{width} {larger} {rows}")
        assert sizes <= {1, *drawn}


@pytest.mark.parametrize("width", range(1, WIDEST))
def test_what_is_left_of_a_row_is_one_block_if_it_may_be(width: int) -> None:
    """Of any number of pixels, or an even one."""
    for unit, last in ((1, ()), (2, (ONE,))):
        times, sizes = computed(over_rows, width, [Count(8, "part", unit), *last], (0, ROWS))
        assert (times == 1).all()
        assert sizes <= {8, width % 8 // unit * unit, 1}
        assert (1 in sizes) == (width % 8 == 1 if unit == 1 else width % 2 == 1)


@pytest.mark.parametrize("width", range(5, WIDEST))
def test_blocks_that_overlap_leave_nothing(width: int) -> None:
    """The last one begins earlier."""
    times, sizes = computed(over_rows, width, [Count(5, "tile", overlaps=True)], (0, ROWS))
    assert sizes == {5}
    assert times.min() == 1
    assert times.sum() == ROWS * -(-width // 5) * 5


def test_a_line_has_no_loop_for_what_no_row_leaves() -> None:
    """Rows of 12 pixels fill blocks of 6; those of 8 leave pairs, but no single pixel."""
    counts = [Count(6, "block"), Count(2, "pair"), ONE]
    assert computed(over_line, 12, counts, (0, ROWS))[1] == {6}
    assert computed(over_line, 8, counts, (0, ROWS))[1] == {6, 2}
    # Four is a multiple of 4, but what blocks of 6 leave of it is not.
    assert computed(over_line, 4, [Count(6, "block"), Count(4, "quad"), ONE], (0, ROWS))[1] == {
        6, 4, 1
    }  # fmt: skip


@pytest.mark.parametrize("width", range(1, WIDEST))
def test_estimates_count_the_blocks_that_the_loops_have(width: int) -> None:
    """Rows within a group, lines of all rows or of the two of a call."""
    counts = [Count(4, "block", unit=1), ONE]
    output = Extents(1, 5, width, 3)
    whole, left = divmod(5 * width, 4)
    of_line = {(whole, 4), (left, 1)}
    of_rows = {(5 * (width // 4), 4), (5 * (width % 4 > 0), width % 4)}
    for calls, spans_rows, want in (
        (Calls(), True, of_line),
        (Calls(), False, of_rows),
        (Calls(2), True, of_rows),
    ):
        found = all_blocks(output, calls, counts, spans_rows=spans_rows)
        assert set(found) == {(times, pixels) for times, pixels in want if times}
    assert lines(output, Calls(2, alone=True), spans_rows=True) == [(2, 2 * width), (1, width)]
