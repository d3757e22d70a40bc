"""Names in C: unique where they must be, unchanged where they can be."""

from __future__ import annotations

import pytest

from microtir.codegen.printer.main_printer import alive_at_steps
from microtir.codegen.printer.names import ScopedNames, UniqueNames
from microtir.dtype import DType
from microtir.tir.ir import Buffer, Var
from microtir.tir.memory_plan import BufferPlacement


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("row", "row"),
        ("int", "int_"),  # a keyword of C
        ("class", "class_"),  # a keyword of C++
        ("INFINITY", "t_INFINITY"),  # a macro of <math.h>
        ("min_i32", "min_i32_2"),  # a helper
        ("expf", "expf_2"),  # a library function that is called
        ("size_t", "t_size_t"),
        ("a b", "a_b"),
        ("conv/1", "conv_1"),
    ],
)
def test_forbidden_names_are_changed(wanted: str, name: str) -> None:
    """A name that means something else in C is changed, every other one is kept."""
    assert UniqueNames().fresh(wanted) == name


def test_lowest_free_number() -> None:
    """A name that is taken gets the lowest number that makes it free."""
    names = UniqueNames(["x"])
    assert [names.fresh("x"), names.fresh("x"), names.fresh("x_2")] == ["x_2", "x_3", "x_2_2"]


def test_sibling_blocks_share_names() -> None:
    """Loops one after the other keep their variable's name; a nested one never hides it."""
    names = ScopedNames(["small_weights"])
    with names.block():
        assert names.define(Var("i")) == "i"
        with names.block():
            assert names.define(Var("i")) == "i_2"
    with names.block():
        assert names.define(Var("i")) == "i"
    assert names.define(Var("small_weights")) == "small_weights_2"


def test_used_names_are_known() -> None:
    """A name counts as used once it was asked for, so that unused parameters can be marked."""
    names, var = ScopedNames(()), Var("n")
    names.define(var)
    assert not names.is_used(var)
    assert names.of(var) == "n"
    assert names.is_used(var)


def test_names_of_the_file_are_seen() -> None:
    """Constants have the names of the file in every function, beside its own."""
    names, known = ScopedNames(()), Buffer("known", (4,), DType.INT8)
    names.see({known: "net_known"})
    own = Buffer("own", (4,), DType.INT8)
    assert (names.of(known), names.define(own), names.of(own)) == ("net_known", "own", "own")


def test_buffers_that_are_in_use_at_a_step() -> None:
    """Those whose first and last step are around it, in their order."""
    spans = [(0, 2), (1, 1), (2, 5), (0, 5)]
    placements = [
        BufferPlacement(f"b{n}", 8 * n, 8, first, last) for n, (first, last) in enumerate(spans)
    ]
    alive = alive_at_steps(placements)
    for step in range(7):
        expected = [p for p in placements if p.first_step <= step <= p.last_step]
        assert list(alive.get(step, ())) == expected
