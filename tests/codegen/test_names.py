"""Names in C: unique where they must be, unchanged where they can be."""

from __future__ import annotations

import pytest

from microtir.codegen.printer.names import ScopedNames, UniqueNames
from microtir.tir.ir import Var


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
