"""Functions that are alike: equal keys where objects and data differ, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.dtype import DType
from microtir.tir.ir import (
    Array,
    Binary,
    BinaryOp,
    Buffer,
    Expr,
    FloatImm,
    For,
    IntImm,
    Load,
    LoopKind,
    PrimFunc,
    RowAccess,
    Scope,
    Store,
    Var,
)
from microtir.tir.passes import pipeline
from microtir.tir.structural_hash import rebind, structural_key
from microtir.tir.text import parse_function, to_text
from microtir.tir.visitor import buffers_read, substitute
from tests.tir.random_programs import functions


def lowered(func: PrimFunc) -> PrimFunc:
    """A function after the passes."""
    for tir_pass in pipeline(unroll_max_extent=4):
        func = tir_pass(func)
    return func


def reread(func: PrimFunc) -> PrimFunc:
    """A copy made of other objects: as the text is read, sequences in sequences are one."""
    return parse_function(to_text([func]))


def with_other_data(func: PrimFunc, turns: int) -> PrimFunc:
    """A copy made of other objects, whose constants hold their values in another order."""
    copy = reread(func)
    tables: dict[Var | Buffer, Expr | Buffer | int] = {
        b: replace(b, data=np.roll(b.data, turns)) for b in buffers_read(copy) if b.data is not None
    }
    return replace(copy, body=substitute(copy.body, tables))


@given(functions(), st.integers(0, 5))
@settings(max_examples=30)
def test_what_passes_make_of_one_they_make_of_the_other(func: PrimFunc, turns: int) -> None:
    """Remaking gives the text that the passes give, with the data of the function itself."""
    func = reread(func)
    other = with_other_data(func, turns)
    key, known = structural_key(other), structural_key(func)
    assert key.tokens == known.tokens
    made = rebind(other, key, known, lowered(func))
    assert to_text([made]) == to_text([lowered(other)])


@given(functions(), functions())
@settings(max_examples=30)
def test_equal_keys_are_equal_texts(one: PrimFunc, other: PrimFunc) -> None:
    """Nothing that the text says is left out of the key."""
    one, other = reread(one), reread(other)
    assert (structural_key(one).tokens == structural_key(other).tokens) == (
        to_text([one]) == to_text([other])
    )


def function(
    *,
    step: int = 2,
    kind: LoopKind = LoopKind.SERIAL,
    name: str = "y",
    op: BinaryOp = BinaryOp.ADD,
    dtype: DType = DType.INT32,
    data: tuple[int, ...] = (1, 7, 3, 2),
    high: int | None = None,
    rows: int = 1,
    shape: tuple[int, ...] = (4,),
) -> PrimFunc:
    """Adds a table to a parameter, times a number."""
    values: Array = np.array(data, np.int32)
    table = Buffer("table", (4,), DType.INT32, Scope.CONSTANT, values)
    x, y = Buffer("x", (4,), DType.INT32), Buffer(name, shape, dtype)
    i, y0 = Var("i"), Var("y0", high=high)
    total = Binary(op, Load(x, (i,)), Binary(BinaryOp.MUL, Load(table, (i,)), IntImm(step)))
    index = (i,) + (IntImm(0),) * (len(shape) - 1)
    body = For(i, y0, IntImm(4), Store(y, index, total), kind)
    return PrimFunc("f", (x, y, y0), body, rows={y: RowAccess(1, 0, rows, 4)})


@pytest.mark.parametrize(
    "other",
    [
        function(step=3),
        function(kind=LoopKind.UNROLLED),
        function(name="z"),
        function(op=BinaryOp.SUB),
        function(dtype=DType.INT64),
        function(data=(1, 8, 3, 2)),
        function(data=(0, 7, 3, 2)),
        function(high=4),
        function(rows=2),
        function(shape=(4, 1)),
    ],
)
def test_a_difference_is_one_of_the_key(other: PrimFunc) -> None:
    """Numbers, kinds, names, operators, types, ranges of data and of parameters, rows, shapes."""
    assert structural_key(other).tokens != structural_key(function()).tokens


def test_data_between_its_ends_is_no_difference() -> None:
    """Only the lowest and the highest value are ever looked at."""
    assert structural_key(function(data=(7, 1, 1, 5))).tokens == structural_key(function()).tokens


def test_zeros_of_both_signs_are_different() -> None:
    """Floats are told apart by their bits, NaN included."""
    y = Buffer("y", (), DType.FLOAT32)
    keys = [
        structural_key(PrimFunc("f", (y,), Store(y, (), FloatImm(value)))).tokens
        for value in (0.0, -0.0, float("nan"), float("nan"))
    ]
    assert keys[0] != keys[1]
    assert keys[2] == keys[3]


def test_what_is_remade_defines_its_own_variables() -> None:
    """Loops that passes copied are no loops of two functions."""
    one = function(high=2)
    other = function(high=2, data=(7, 1, 1, 5))
    made = rebind(other, structural_key(other), structural_key(one), one)
    assert isinstance(made.body, For)
    assert isinstance(one.body, For)
    assert made.body.var is not one.body.var
    assert made.params is other.params
