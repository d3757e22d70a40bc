from __future__ import annotations

import numpy as np
import pytest

from microtir import te
from microtir.dtype import DType
from microtir.errors import ScheduleError
from tests.schedule.programs import blur, check_meaning, local_shapes, matmul

I32 = DType.INT32


# --- cache_write --------------------------------------------------------------------------------


def test_cache_write_makes_three_nests() -> None:
    """Accumulators are set, added to and written in loops of their own."""
    y = matmul()
    s = te.create_schedule(y)
    _, ii = s.split(s.loop(y, "i"), 2)
    jo, ji = s.split(s.loop(y, "j"), 4)
    s.reorder(jo, ii, ji)
    array = s.cache_write(ii)
    assert array.shape == (2, 4)
    names = [loop.name for loop in s.loops(y)]
    assert names == [
        "i_outer", "j_outer", "i_inner_init", "j_inner_init", "i_inner", "j_inner", "k",
        "i_inner_write", "j_inner_write",
    ]  # fmt: skip
    s.reorder(s.loop(y, "k"), ii, ji)
    s.unroll(ji)
    check_meaning(s, y)


def test_cache_write_keeps_what_happens_to_the_sum() -> None:
    """Binds and epilogues stay with the nest that needs them."""
    x = te.placeholder((6, 8), I32, "x")
    k = te.reduce_axis(0, 8, "k")

    def body(i: te.Expr) -> te.Expr:
        offset = te.bind("offset", x[i, 0])
        scaled = te.bind("scaled", te.sum(x[i, k] + offset, k) * 3)
        return te.select(scaled > 0, scaled, -scaled)

    y = te.compute((6,), body, "y")
    s = te.create_schedule(y)
    _, inner = s.split(s.loop(y, "i"), 3)
    s.cache_write(inner)
    check_meaning(s, y)


def test_cache_write_reads_what_only_the_writing_needs_behind_the_sums() -> None:
    """A constant of a row waits in no register while the sums are added."""
    x, b = te.placeholder((2, 3, 8), I32, "x"), te.placeholder((2,), I32, "b")
    k = te.reduce_axis(0, 8, "k")

    def body(row: te.Expr, i: te.Expr) -> te.Expr:
        return te.sum(x[row, i, k], k) * te.bind("factor", b[row])

    y = te.compute((2, 3), body, "y")
    s = te.create_schedule(y)
    assert s.text().index("let factor") < s.text().index("for k")
    s.cache_write(s.loop(y, "i"))
    assert s.text().index("let factor") > s.text().index("for k")
    check_meaning(s, y)


def test_cache_write_without_an_accumulator_is_refused() -> None:
    """An element that is not reduced has nothing to accumulate."""
    x = te.placeholder((4,), I32, "x")
    y = te.compute((4,), lambda i: x[i], "y")
    s = te.create_schedule(y)
    with pytest.raises(ScheduleError, match="does not compute an element"):
        s.cache_write(s.loop(y, "i"))


def test_cache_write_of_a_runtime_extent_is_refused() -> None:
    """A LOCAL array has a fixed size; a block of a split has one."""
    n = te.var("n", 1, 6)
    x = te.placeholder((6, 8), I32, "x")
    k = te.reduce_axis(0, 8, "k")
    y = te.compute((6,), lambda i: te.sum(x[i, k], k), "y", ranges={0: (0, n)})
    s = te.create_schedule(y)
    with pytest.raises(ScheduleError, match="number of iterations of 'i' is not constant"):
        s.cache_write(s.loop(y, "i"))
    _, inner = s.split(s.loop(y, "i"), 4)
    s.cache_write(inner)
    check_meaning(s, y)


# --- cache_read ---------------------------------------------------------------------------------


def test_cache_read_copies_the_window_of_an_iteration() -> None:
    """The copy of a 3 x 3 window is cut at the borders, where the loads are."""
    x, t, y = blur()
    s = te.create_schedule(y)
    s.compute_at(t, s.loop(y, "col"))
    local, copies = s.cache_read(x, s.loop(y, "col"))
    assert local.shape == (3, 3)
    assert [loop.name for loop in copies] == ["x_local_i0", "x_local_i1"]
    check_meaning(s, y)


def test_cache_read_of_a_constant_and_a_buffer() -> None:
    """A row of weights is copied once per row; a buffer may be given instead of its tensor."""
    w = te.constant(np.arange(12, dtype=np.int32).reshape(3, 4), "w")
    x = te.placeholder((3, 4), I32, "x")
    y = te.compute((3, 4), lambda r, c: x[r, c] * w[r, 3 - c], "y")
    s = te.create_schedule(y)
    s.cache_read(w, s.loop(y, "r"))
    s.cache_read(x.buffer, s.loop(y, "r"))
    func = check_meaning(s, y)
    assert local_shapes(func) == {"x_local": (1, 4), "w_local": (1, 4)}


def test_cache_read_of_an_unbounded_index_takes_the_whole_axis() -> None:
    """A looked-up table is copied as a whole."""
    table = te.constant(np.arange(16, dtype=np.int32), "table")
    x = te.placeholder((4,), DType.UINT8, "x")
    y = te.compute((4,), lambda i: table[te.cast(I32, x[i]) % 16], "y")
    s = te.create_schedule(y)
    local, _ = s.cache_read(table, s.loop(y, "i"))
    assert local.shape == (16,)
    check_meaning(s, y)


def test_cache_read_is_refused_where_it_makes_no_sense() -> None:
    """Only inputs and constants are copied, where they are read, in parts of a fixed size."""
    n = te.var("n", 1, 6)
    x = te.placeholder((n, 4), I32, "x")
    other = te.placeholder((4,), I32, "other")
    t = te.compute((4,), lambda i: x[0, i] + other[i], "t")
    y = te.compute((4,), lambda i: t[i], "y")
    k = te.reduce_axis(0, n, "k")
    z = te.compute((4,), lambda i: te.sum(x[k, i], k), "z")
    s = te.create_schedule([y, z])
    with pytest.raises(ScheduleError, match="neither an input nor a constant"):
        s.cache_read(t, s.loop(y, "i"))
    with pytest.raises(ScheduleError, match="'other' is not read inside"):
        s.cache_read(other, s.loop(y, "i"))
    with pytest.raises(ScheduleError, match="axis 0 of 'x' has extent 'n'"):
        s.cache_read(x, s.loop(z, "i"))
    s.cache_read(x, s.loop(t, "i"))
    check_meaning(s, [y, z])


# --- compute_at ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("where", "shape"), [("row", (3, 5)), ("col", (3, 3))])
def test_compute_at_shrinks_the_buffer(where: str, shape: tuple[int, int]) -> None:
    """Inside a loop of its consumer, a stage computes only the window that is read."""
    _, t, y = blur()
    s = te.create_schedule(y)
    s.compute_at(t, s.loop(y, where))
    func = check_meaning(s, y)
    assert local_shapes(func) == {"t": shape}


def test_compute_at_a_block_computes_the_block_and_its_halo() -> None:
    """The window of a block of two rows is four rows."""
    _, t, y = blur()
    s = te.create_schedule(y)
    outer, _ = s.split(s.loop(y, "row"), 2)
    s.compute_at(t, outer)
    func = check_meaning(s, y)
    assert local_shapes(func) == {"t": (4, 5)}


def test_compute_at_sees_through_named_bounds() -> None:
    """Bounds of a window that are named with te.bind are bounds all the same."""
    x = te.placeholder((6, 5), I32, "x")
    t = te.compute((6, 5), lambda r, c: x[r, c] * 2, "t")

    def body(row: te.Expr, col: te.Expr) -> te.Expr:
        begin = te.bind("begin", te.maximum(0, 1 - row))
        end = te.bind("end", te.minimum(3, 7 - row))
        dy = te.reduce_axis(begin, end, "dy")
        return te.sum(t[row + dy - 1, col], dy)

    y = te.compute((6, 5), body, "y")
    for where, shape in (("row", (3, 5)), ("col", (3, 1))):
        s = te.create_schedule(y)
        s.compute_at(t, s.loop(y, where))
        assert local_shapes(check_meaning(s, y)) == {"t": shape}


def test_part_that_depends_on_memory_is_the_whole_axis() -> None:
    """A row that is looked up inside may be any row; looked up before, it is one row."""
    x, where = te.placeholder((6, 5), I32, "x"), te.placeholder((6,), DType.UINT8, "where")
    t = te.compute((6, 5), lambda r, c: x[r, c] * 2, "t")

    def body(row: te.Expr, col: te.Expr) -> te.Expr:
        return t[te.bind("at", te.cast(I32, where[row]) % 6), col]

    y = te.compute((6, 5), body, "y")
    for axis, shape in (("row", (6, 5)), ("col", (1, 1))):
        s = te.create_schedule(y)
        s.compute_at(t, s.loop(y, axis))
        assert local_shapes(check_meaning(s, y)) == {"t": shape}


def test_compute_at_through_two_stages() -> None:
    """A producer may be moved into a producer that was moved before."""
    x = te.placeholder((8,), I32, "x")
    a = te.compute((8,), lambda i: x[i] + 1, "a")
    b = te.compute((7,), lambda i: a[i] * a[i + 1], "b")
    y = te.compute((6,), lambda i: b[i] + b[i + 1], "y")
    s = te.create_schedule(y)
    s.compute_at(b, s.loop(y, "i"))
    s.compute_at(a, s.loop(b, "i"))
    assert local_shapes(check_meaning(s, y)) == {"b": (2,), "a": (2,)}


def test_compute_at_keeps_a_reduction_with_its_element() -> None:
    """A producer with accumulators and binds moves as a whole."""
    x = te.placeholder((4, 6), I32, "x")
    k = te.reduce_axis(0, 6, "k")
    t = te.compute((4,), lambda r: te.bind("total", te.sum(x[r, k], k)) + 1, "t")
    y = te.compute((4, 6), lambda r, c: x[r, c] - t[r], "y")
    s = te.create_schedule(y)
    s.compute_at(t, s.loop(y, "r"))
    assert local_shapes(check_meaning(s, y)) == {"t": (1,)}


def test_compute_at_restricts_a_runtime_range() -> None:
    """The rows of a producer follow the rows that the caller asks for."""
    y0, y1 = te.var("y0", 0, 6), te.var("y1", 0, 6)
    x = te.placeholder((6, 3), I32, "x")
    t = te.compute((6, 3), lambda r, c: x[r, c] + 1, "t")
    y = te.compute((6, 3), lambda r, c: t[r, c] + t[r, 2 - c], "y", ranges={0: (y0, y1)})
    s = te.create_schedule(y)
    s.compute_at(t, s.loop(y, "r"))
    assert local_shapes(check_meaning(s, y)) == {"t": (1, 3)}


def test_compute_at_is_refused_with_the_reason() -> None:
    """Outputs, stages with two readers, stages in rings and foreign loops stay where they are."""
    x, t, y = blur()
    s = te.create_schedule([t, y])
    with pytest.raises(ScheduleError, match="'t' is an output"):
        s.compute_at(t, s.loop(y, "row"))
    s = te.create_schedule(y)
    with pytest.raises(ScheduleError, match="loop of 't' itself"):
        s.compute_at(t, s.loop(t, "r"))
    with pytest.raises(ScheduleError, match="'x' is not computed"):
        s.compute_at(x, s.loop(y, "row"))
    s.split(s.loop(t, "r"), 2)
    with pytest.raises(ScheduleError, match="is not one of its loop variables"):
        s.compute_at(t, s.loop(y, "row"))

    two = te.compute((6, 5), lambda r, c: t[r, c], "two")
    s = te.create_schedule([y, two])
    with pytest.raises(ScheduleError, match="'t' is also read outside"):
        s.compute_at(t, s.loop(two, "r"))
    lone = te.compute((4,), lambda i: x[i, 0], "lone")
    s = te.create_schedule([lone, y])
    with pytest.raises(ScheduleError, match=r"does not run after|is not read inside"):
        s.compute_at(t, s.loop(lone, "i"))


def test_compute_at_twice_written_storage_is_refused() -> None:
    """Two nests that fill one buffer cannot be moved as one."""
    x = te.placeholder((4,), I32, "x")
    t = te.compute((2,), lambda i: x[i], "t", store=lambda i: (i,), buffer_shape=(4,))
    u = te.compute((2,), lambda i: x[i + 2], "u", store=lambda i: (i + 2,), into=t)
    y = te.compute((2,), lambda i: t[i] + u[i], "y")
    s = te.create_schedule(y)
    with pytest.raises(ScheduleError, match="written by 2 statements"):
        s.compute_at(t, s.loop(y, "i"))


def test_shrunk_stage_is_no_argument() -> None:
    """An intermediate tensor that is no longer stored as a whole cannot be passed out."""
    x, t, y = blur()
    s = te.create_schedule(y)
    s.compute_at(t, s.loop(y, "row"))
    with pytest.raises(ScheduleError, match="compute_at reduced its storage"):
        s.primfunc([x, t, y], "f")
