"""Walking, rewriting and substituting."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from microtir.errors import TirError
from microtir.tir.ir import Buffer, DType, For, IntImm, Load, PrimFunc, Store, Var
from microtir.tir.passes.partition import duplicate
from microtir.tir.text import parse_function, stmt_text
from microtir.tir.visitor import (
    Rewriter,
    Visitor,
    buffers_read,
    buffers_written,
    rewrite_function,
    substitute,
    variables_used,
    walk,
)
from tests.tir.random_programs import functions

PROGRAM = """
meaning copy(a: int8[2], b: int8[2]):
  for i in range(0, 2):
    b[i] = a[i]

func f(x: int8[4], y: int8[4], z: int8[2], n: int32 in 0..4):
  alloc t: int32[] local
  t[] = n
  for i in range(0, n):
    let k: int32 = i + t[]
    if k < 4 and k >= 0:
      y[k] = select(x[i] > int8(0), x[i], int8(0))
  call copy(x at [n], z at [0])
"""


@given(functions())
@settings(max_examples=40)
def test_rewriting_nothing_keeps_the_object(func: PrimFunc) -> None:
    """The plain rewriter returns the very same function."""
    assert rewrite_function(func, Rewriter()) is func


@given(functions())
@settings(max_examples=40)
def test_visitor_and_walk_see_the_same(func: PrimFunc) -> None:
    """Both ways of reading a tree meet the same nodes in the same order."""

    class Recorder(Visitor):
        def __init__(self) -> None:
            self.seen: list[object] = []

        def visit(self, node) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
            self.seen.append(node)
            super().visit(node)

    recorder = Recorder()
    recorder.visit(func.body)
    assert all(a is b for a, b in zip(recorder.seen, walk(func), strict=True))


def test_buffers_and_variables() -> None:
    """Buffers count as read or written by what is done to them, through kernels too."""
    func = parse_function(PROGRAM)
    assert [b.name for b in buffers_read(func)] == ["t", "x"]
    assert [b.name for b in buffers_written(func)] == ["t", "y", "z"]
    assert [v.name for v in variables_used(func)] == ["n", "i", "k"]


def test_substitute_replaces_values_and_buffers() -> None:
    """Vars become expressions, ints become literals of their type, buffers become buffers."""
    x, y = Buffer("x", (4,), DType.INT32), Buffer("y", (4,), DType.INT32)
    i, j = Var("i"), Var("j")
    store = Store(x, (i,), Load(x, (j,)))
    new = substitute(store, {i: 3, j: i, x: y})
    assert new == Store(y, (IntImm(3),), Load(y, (i,)))
    assert substitute(store, {Var("i"): 3}) is store


def test_substitute_renames_where_a_variable_is_defined() -> None:
    """A loop variable can be renamed, but not replaced by a value."""
    i, j = Var("i"), Var("j")
    x = Buffer("x", (4,), DType.INT32)
    loop = For(i, IntImm(0), IntImm(4), Store(x, (i,), i))
    assert substitute(loop, {i: j}) == For(j, IntImm(0), IntImm(4), Store(x, (j,), j))
    with pytest.raises(TirError, match="can only be renamed"):
        substitute(loop, {i: 3})
    with pytest.raises(TirError, match="can be replaced only by a buffer"):
        substitute(loop, {x: 3})
    with pytest.raises(TirError, match="cannot be replaced by buffer"):
        substitute(i, {i: x})


def test_duplicate_shares_no_definition() -> None:
    """A copy has the same text and defines none of the original's Vars and Buffers."""
    body = parse_function(PROGRAM).body
    copy = duplicate(body)
    assert stmt_text(copy) == stmt_text(body)
    defined = {n.var for n in walk(body) if isinstance(n, For)}
    assert defined.isdisjoint(n.var for n in walk(copy) if isinstance(n, For))
