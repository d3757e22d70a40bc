from __future__ import annotations

import pytest

from microtir import te
from microtir.dtype import DType
from microtir.errors import ScheduleError
from microtir.tir.ir import For, LoopKind
from microtir.tir.visitor import walk
from tests.schedule.programs import blur, check_meaning, matmul

I32, F32 = DType.INT32, DType.FLOAT32


def test_independent_loops_may_change_places() -> None:
    """The loops over the elements of an output may be in any order."""
    y = matmul()
    s = te.create_schedule(y)
    s.reorder(s.loop(y, "j"), s.loop(y, "i"))
    assert [loop.name for loop in s.loops(y)] == ["j", "i", "k"]
    check_meaning(s, y)


def test_tiling_moves_guards_inside() -> None:
    """Two tails split off, the blocks outside: the guards end up around the element."""
    y = matmul()
    s = te.create_schedule(y)
    io, ii = s.split(s.loop(y, "i"), 2)
    jo, ji = s.split(s.loop(y, "j"), 4)
    s.reorder(io, jo, ii, ji)
    assert [loop.name for loop in s.loops(y)][:4] == ["i_outer", "j_outer", "i_inner", "j_inner"]
    check_meaning(s, y)


def test_loops_that_are_not_named_keep_their_places() -> None:
    """Reordering two of three loops leaves the third one where it is."""
    x = te.placeholder((2, 3, 4), I32, "x")
    y = te.compute((2, 3, 4), lambda a, b, c: x[a, b, c], "y")
    s = te.create_schedule(y)
    s.reorder(s.loop(y, "c"), s.loop(y, "a"))
    assert [loop.name for loop in s.loops(y)] == ["c", "b", "a"]
    check_meaning(s, y)


def test_register_block_keeps_float_sums_in_order() -> None:
    """With an accumulator per element the reduction moves outside, and each sum keeps its order."""
    y = matmul(dtype=F32)
    s = te.create_schedule(y)
    _, ji = s.split(s.loop(y, "j"), 4)
    s.cache_write(ji)
    s.reorder(s.loop(y, "k"), ji)
    s.unroll(ji)
    check_meaning(s, y)


def test_integer_sum_may_be_reordered_float_sum_may_not() -> None:
    """Exact sums have one value in every order; a float sum needs the user's word."""

    def total(dtype: DType) -> te.Tensor:
        x = te.placeholder((4, 5), dtype, "x")
        a, b = te.reduce_axis(0, 4, "a"), te.reduce_axis(0, 5, "b")
        return te.compute((2,), lambda i: te.sum(x[a, b], [a, b], init=te.cast(dtype, i)), "y")

    y = total(I32)
    s = te.create_schedule(y)
    s.reorder(s.loop(y, "b"), s.loop(y, "a"))
    check_meaning(s, y)

    y = total(F32)
    s = te.create_schedule(y)
    with pytest.raises(ScheduleError, match=r"every step rounds.*\n.*allow_reassociation"):
        s.reorder(s.loop(y, "b"), s.loop(y, "a"))
    s.reorder(s.loop(y, "b"), s.loop(y, "a"), allow_reassociation=True)
    assert [loop.name for loop in s.loops(y)] == ["i", "b", "a"]
    assert "allow_reassociation" in s.steps[0]


def test_maximum_of_floats_depends_on_the_order() -> None:
    """NaN and zeros of both signs make a float maximum depend on the order of its operands."""
    x = te.placeholder((4, 5), F32, "x")
    a, b = te.reduce_axis(0, 4, "a"), te.reduce_axis(0, 5, "b")
    y = te.compute((), lambda: te.max(x[a, b], [a, b]), "y")
    s = te.create_schedule(y)
    with pytest.raises(ScheduleError, match="floating point"):
        s.reorder(s.loop(y, "b"), s.loop(y, "a"))


def test_storage_that_is_reused_keeps_its_order() -> None:
    """Rows of a ring overwrite each other: the row loop may not move inside."""
    x = te.placeholder((6, 4), I32, "x")
    ring = te.compute(
        (6, 4), lambda r, c: x[r, c], "ring", store=lambda r, c: (r % 2, c), buffer_shape=(2, 4)
    )
    s = te.create_schedule(ring)
    with pytest.raises(ScheduleError, match="same element of 'ring'"):
        s.vectorize(s.loop(ring, "r"))
    s.reorder(s.loop(ring, "c"), s.loop(ring, "r"))  # each column keeps its own order of rows
    s.vectorize(s.loop(ring, "c"))
    check_meaning(s, ring)


def test_diagonal_storage_is_a_dependence() -> None:
    """Elements (r, c) and (r + 1, c - 1) share storage: exchanging the loops changes the last."""
    x = te.placeholder((3, 3), I32, "x")
    y = te.compute(
        (3, 3), lambda r, c: x[r, c], "y", store=lambda r, c: (r + c,), buffer_shape=(5,)
    )
    s = te.create_schedule(y)
    with pytest.raises(ScheduleError, match="same element of 'y'"):
        s.reorder(s.loop(y, "c"), s.loop(y, "r"))


def test_range_that_depends_on_the_outer_loop_stays_inside() -> None:
    """A triangular range cannot be hoisted out of the loop that it depends on."""
    x = te.placeholder((4, 4), I32, "x")
    i = te.reduce_axis(0, 4, "i")
    j = te.reduce_axis(0, i + 1, "j")
    y = te.compute((), lambda: te.sum(x[i, j], [i, j]), "y")
    s = te.create_schedule(y)
    with pytest.raises(ScheduleError, match="range of 'j' depends on 'i'"):
        s.reorder(s.loop(y, "j"), s.loop(y, "i"))


def test_imperfect_nest_is_refused_with_the_way_out() -> None:
    """The accumulator between the loops is named, and cache_write as the way to move it."""
    y = matmul()
    s = te.create_schedule(y)
    with pytest.raises(ScheduleError, match=r"contains more than the next loop.*\n.*cache_write"):
        s.reorder(s.loop(y, "k"), s.loop(y, "j"))
    with pytest.raises(ScheduleError, match="fewer than two"):
        s.reorder(s.loop(y, "k"))
    _, t, y = blur()
    s = te.create_schedule(y)
    with pytest.raises(ScheduleError, match="no loop contains"):
        s.reorder(s.loop(t, "r"), s.loop(y, "col"))


def test_vectorize_needs_independent_iterations() -> None:
    """The loops over elements are independent, the loop of a reduction is not."""
    y = matmul()
    s = te.create_schedule(y)
    with pytest.raises(ScheduleError, match="same element of 'sum'"):
        s.vectorize(s.loop(y, "k"))
    s.vectorize(s.loop(y, "j"))
    func = check_meaning(s, y)
    kinds = [node.kind for node in walk(func) if isinstance(node, For)]
    assert kinds == [LoopKind.SERIAL, LoopKind.VECTORIZED, LoopKind.SERIAL]


def test_block_of_a_split_is_independent_too() -> None:
    """Indices with a block and a guard are still told apart."""
    y = matmul()
    s = te.create_schedule(y)
    outer, inner = s.split(s.loop(y, "j"), 4)
    s.vectorize(inner)
    s.vectorize(outer)
    check_meaning(s, y)


def test_gathered_stores_are_not_independent() -> None:
    """A store whose index is loaded may hit any element."""
    x, where = te.placeholder((4,), I32, "x"), te.placeholder((4,), I32, "where")
    y = te.compute((4,), lambda i: x[where[i] % 4], "y")
    s = te.create_schedule(y)
    s.vectorize(s.loop(y, "i"))  # reading is free
    fused = te.compute(
        (4, 2), lambda i, _: x[i], "z", store=lambda i, j: (i // 2 + j,), buffer_shape=(4,)
    )
    s = te.create_schedule(fused)
    with pytest.raises(ScheduleError, match="same element of 'z'"):
        s.vectorize(s.loop(fused, "i"))


def test_unroll_needs_a_constant_range() -> None:
    """Copies are made at compile time, and not too many."""
    n = te.var("n", 0, 4)
    x = te.placeholder((400,), I32, "x")
    y = te.compute((400,), lambda i: x[i], "y", ranges={0: (0, n)})
    s = te.create_schedule(y)
    with pytest.raises(ScheduleError, match="not constant"):
        s.unroll(s.loop(y, "i"))
    z = te.compute((400,), lambda i: x[i], "z")
    s = te.create_schedule(z)
    with pytest.raises(ScheduleError, match="400 copies"):
        s.unroll(s.loop(z, "i"))


def test_marked_loop_is_not_rewritten() -> None:
    """A kind is the last thing that a loop gets: other steps would lose it."""
    y = matmul()
    s = te.create_schedule(y)
    j = s.loop(y, "j")
    s.vectorize(j)
    for step in (lambda: s.split(j, 2), lambda: s.unroll(j), lambda: s.reorder(j, s.loop(y, "i"))):
        with pytest.raises(ScheduleError, match="already vectorized"):
            step()
