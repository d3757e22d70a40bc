from __future__ import annotations

from collections.abc import Callable

import pytest

from microtir import te
from microtir.dtype import DType
from microtir.errors import ScheduleError
from microtir.schedule import Schedule
from microtir.tir.ir import For, If
from microtir.tir.visitor import walk
from tests.schedule.programs import blur, check_meaning, matmul


@pytest.mark.parametrize("factor", [1, 2, 3, 5, 7, 9])
def test_split_keeps_the_meaning_and_guards_a_tail(factor: int) -> None:
    """A factor that divides the range needs no If; any other one guards the last block."""
    y = matmul()
    s = te.create_schedule(y)
    outer, inner = s.split(s.loop(y, "j"), factor)
    assert (outer.name, inner.name) == ("j_outer", "j_inner")
    func = check_meaning(s, y)
    assert any(isinstance(n, If) for n in walk(func)) == (7 % factor != 0)


def test_split_of_a_runtime_range_is_guarded() -> None:
    """A range with parameters is split into blocks of which the last one may be cut."""
    y0, y1 = te.var("y0", 0, 9), te.var("y1", 0, 9)
    x = te.placeholder((9,), DType.INT32, "x")
    y = te.compute((9,), lambda i: x[i] + 1, "y", ranges={0: (y0, y1)})
    s = te.create_schedule(y)
    s.split(s.loop(y, "i"), 4)
    check_meaning(s, y)


def test_split_of_a_multiple_needs_no_guard() -> None:
    """A runtime range that is a product with a multiple of the factor is split evenly."""
    n = te.var("n", 1, 3)
    x = te.placeholder((12,), DType.INT32, "x")
    y = te.compute((12,), lambda i: x[i] + 1, "y", ranges={0: (0, n * 4)})
    s = te.create_schedule(y)
    s.split(s.loop(y, "i"), 2)
    assert not any(isinstance(node, If) for node in walk(check_meaning(s, y)))


def test_fuse_counts_through_both_ranges() -> None:
    """Fused loops visit the same elements in the same order, whatever the ranges begin with."""
    x = te.placeholder((6, 5), DType.INT32, "x")
    y = te.compute((6, 5), lambda r, c: x[r, c], "y", ranges={0: (1, 6), 1: (2, 5)})
    s = te.create_schedule(y)
    fused = s.fuse(s.loop(y, "r"), s.loop(y, "c"))
    assert fused.name == "r_c"
    func = check_meaning(s, y)
    assert sum(isinstance(node, For) for node in walk(func)) == 1


@pytest.mark.parametrize("at", [-3, 0, 2, 7, 99])
def test_partition_cuts_the_range_at_any_point(at: int) -> None:
    """A point outside the range leaves one of the two loops empty."""
    y = matmul()
    s = te.create_schedule(y)
    first, rest = s.partition(s.loop(y, "j"), at)
    assert [loop.name for loop in s.loops(y)] == ["i", "j_first", "k", "j_rest", "k_rest"]
    assert (first, rest) == (s.loop(y, "j_first"), s.loop(y, "j_rest"))
    check_meaning(s, y)


def test_partition_of_a_clipped_range() -> None:
    """A part that only runs away from the border is proven to stay inside the image."""
    *_, y = blur()
    s = te.create_schedule(y)
    s.partition(s.loop(y, "dy"), 1)
    check_meaning(s, y)


def test_partition_at_an_expression() -> None:
    """The point may depend on parameters, also new ones, and on outer loops."""
    y, n = matmul(), te.var("n", 0, 9)
    s = te.create_schedule(y)
    s.partition(s.loop(y, "j"), n + 1)
    func = check_meaning(s, y)
    assert [p.name for p in func.params] == ["x", "w", "n", "y"]
    s = te.create_schedule(y)
    s.partition(s.loop(y, "j"), te.as_expr(s.loop(y, "i").var) + 1)
    check_meaning(s, y)


def illegal_steps() -> list[tuple[str, Callable[[Schedule, te.Tensor], object], str]]:
    """Name, use, and part of the message of steps that are refused."""
    x = te.placeholder((9,), DType.INT32, "x")
    inner = te.as_expr(te.reduce_axis(0, 3, "foreign"))
    return [
        ("factor 0", lambda s, y: s.split(s.loop(y, "j"), 0), "0 is not positive"),
        ("not nested", lambda s, y: s.fuse(s.loop(y, "i"), s.loop(y, "k")), "not the only"),
        ("reduction", lambda s, y: s.fuse(s.loop(y, "j"), s.loop(y, "k")), "not the only"),
        ("foreign point", lambda s, y: s.partition(s.loop(y, "j"), inner), "'foreign' is not"),
        ("loaded point", lambda s, y: s.partition(s.loop(y, "j"), x[0]), "reads the tensor 'x'"),
        (
            "type",
            lambda s, y: s.partition(s.loop(y, "j"), te.const(1, DType.INT8)),
            "has the type int8",
        ),
        ("misspelt", lambda s, y: s.loop(y, "jj"), "has no loop 'jj'"),
        ("foreign tensor", lambda s, _: s.loops(x), "'x' is not computed by this schedule"),
    ]


@pytest.mark.parametrize(
    ("use", "message"), [pytest.param(u, m, id=n) for n, u, m in illegal_steps()]
)
def test_illegal_step_is_refused_and_changes_nothing(
    use: Callable[[Schedule, te.Tensor], object], message: str
) -> None:
    """A refused step says why, and the program is what it was."""
    y = matmul()
    s = te.create_schedule(y)
    before = s.body
    with pytest.raises(ScheduleError, match=message):
        use(s, y)
    assert s.body is before
    assert s.steps == ()


def test_fuse_needs_a_constant_inner_range() -> None:
    """Iterations of an inner range that varies cannot be counted through."""
    x = te.placeholder((4, 4), DType.INT32, "x")
    n = te.var("n", 0, 4)
    y = te.compute((4, 4), lambda r, c: x[r, c], "y", ranges={1: (0, n)})
    s = te.create_schedule(y)
    with pytest.raises(ScheduleError, match="not constant"):
        s.fuse(s.loop(y, "r"), s.loop(y, "c"))


def test_stale_handle_names_what_there_is() -> None:
    """The handle of a loop that was split away is an error that lists the present loops."""
    y = matmul()
    s = te.create_schedule(y)
    j = s.loop(y, "j")
    s.split(j, 2)
    with pytest.raises(ScheduleError, match=r"y\.j' does not exist.*\n.*i, j_outer, j_inner, k"):
        s.split(j, 2)


def test_ambiguous_name_asks_for_a_handle() -> None:
    """Two loops of one name are told apart by their handles."""
    y = matmul()
    s = te.create_schedule(y)
    _, rest = s.partition(s.loop(y, "i"), 2)
    s.partition(rest, 3)
    assert [loop.name for loop in s.loops(y)].count("j_rest") == 1
    s.partition(s.loop(y, "j"), 3)
    with pytest.raises(ScheduleError, match="has no loop 'j'"):
        s.loop(y, "j")


def test_steps_and_history_print_what_was_done() -> None:
    """Every step is one line, and the history holds the program after each."""
    y = matmul()
    s = te.create_schedule(y)
    s.split(s.loop(y, "j"), 4)
    s.unroll(s.loop(y, "j_inner"))
    assert s.steps == ("split(y.j, 4) -> j_outer, j_inner", "unroll(y.j_inner)")
    (_, after_split), (_, after_unroll) = s.history()
    assert "unrolled" not in after_split and "unrolled" in after_unroll
    assert s.text() == after_unroll
