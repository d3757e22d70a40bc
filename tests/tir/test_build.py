"""Folding constructors: what they fold, and that folding never changes a value."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.dtype import DType
from microtir.errors import TirError
from microtir.tir import arithmetic, build
from microtir.tir.arithmetic import UndefinedError
from microtir.tir.ir import (
    Allocate,
    Binary,
    BinaryOp,
    Buffer,
    Cast,
    Expr,
    FloatImm,
    IntImm,
    Intrinsic,
    Load,
    Scope,
    Select,
    Seq,
    Store,
    Unary,
    UnaryOp,
    Var,
)
from microtir.tir.text import expr_text

X, Y = Var("x"), Var("y")
WIDE = Var("wide", DType.INT64)
COUNT = Var("count", DType.UINT32)
REAL = Load(Buffer("f", (4,), DType.FLOAT32), (IntImm(0),))
BYTE = Load(Buffer("b", (4,), DType.INT8), (IntImm(0),))
MIN32, MAX32 = DType.INT32.min, DType.INT32.max

FOLDED = {
    "literal to the right": (build.add(3, X), "x + 3"),
    "literals merge": (build.add(build.add(X, 3), 4), "x + 7"),
    "literals cancel": (build.sub(build.add(X, 3), 3), "x"),
    "literal turns negative": (build.sub(build.add(X, 3), 5), "x - 2"),
    "minus a negative": (build.sub(X, -3), "x + 3"),
    "plus a negative": (build.add(X, -3), "x - 3"),
    "lowest value has no opposite": (build.sub(X, MIN32), f"x - {MIN32}"),
    "merging stops at the type": (build.add(build.add(X, MAX32), 1), f"x + {MAX32} + 1"),
    "difference with itself": (build.sub(X, X), "0"),
    "times one": (build.mul(1, X), "x"),
    "times zero": (build.mul(X, 0), "0"),
    "factors merge": (build.mul(build.mul(X, 2), 3), "x * 6"),
    "overflow is left in place": (build.mul(MAX32, 2), f"{MAX32} * 2"),
    "double negation": (build.neg(build.neg(X)), "x"),
    "negated literal": (build.neg(5), "-5"),
    "division by one": (build.floordiv(X, 1), "x"),
    "divisions merge": (build.floordiv(build.floordiv(X, 2), 3), "floordiv(x, 6)"),
    "division by zero is left": (build.floordiv(7, 0), "floordiv(7, 0)"),
    "rounds to minus infinity": (build.floordiv(-7, 2), "-4"),
    "rounds to zero": (build.truncdiv(-7, 2), "-3"),
    "modulo one": (build.floormod(X, 1), "0"),
    "modulo of a literal": (build.floormod(-1, 8), "7"),
    "rounds up": (build.ceildiv(X, 4), "floordiv(x + 3, 4)"),
    "minima merge": (build.minimum(build.minimum(X, 5), 3), "min(x, 3)"),
    "maximum of the same": (build.maximum(X, X), "x"),
    "shift by nothing": (build.shift_left(X, 0), "x"),
    "shift of a literal": (build.shift_right(-5, 1), "-3"),
    "bits": (build.bit_or(build.bit_and(6, 3), build.bit_xor(8, 12)), "6"),
    "comparison mirrored": (build.lt(3, X), "x > 3"),
    "comparison of literals": (build.ge(3, 3), "true"),
    "comparison with itself": (build.ne(X, X), "false"),
    "conjunction": (build.logical_and(build.TRUE, build.lt(X, 3)), "x < 3"),
    "decided conjunction": (build.logical_and(build.lt(X, 3), build.FALSE), "false"),
    "decided disjunction": (build.logical_or(build.lt(X, 3), build.TRUE), "true"),
    "no conditions": (build.logical_and(), "true"),
    "negated comparison": (build.logical_not(build.lt(X, 3)), "x >= 3"),
    "decided select": (build.select(build.FALSE, X, 2), "2"),
    "select of the same": (build.select(build.lt(X, 3), X, X), "x"),
    "numbers take the other's type": (build.add(REAL, 1), "f[0] + 1.0"),
    "wide numbers": (build.mul(WIDE, 3), "wide * int64(3)"),
    "cast of a literal": (build.cast(DType.INT8, -5), "int8(-5)"),
    "cast that does not fit is left": (build.cast(DType.INT8, 300), "cast(int8, 300)"),
    "cast to the same type": (build.cast(DType.INT32, X), "x"),
    "cast of a widening cast": (
        build.cast(DType.INT64, build.cast(DType.INT32, BYTE)), "cast(int64, b[0])",
    ),
    "a narrowing cast stays": (
        build.cast(DType.INT64, build.cast(DType.INT8, X)), "cast(int64, cast(int8, x))",
    ),
    "fraction cut off": (build.cast(DType.INT32, build.float_const(-2.75)), "-2"),
    "intrinsic of literals": (build.call(Intrinsic.SATURATING_SHIFT_LEFT, 3, 30), str(MAX32)),
    "undefined intrinsic is left": (
        build.call(Intrinsic.ROUNDING_DIVIDE_BY_POT, 3, 99), "rounding_divide_by_pot(3, 99)",
    ),
    "float literal is rounded": (build.float_const(0.1), "0.1"),
}  # fmt: skip


@pytest.mark.parametrize("name", FOLDED)
def test_folding(name: str) -> None:
    """Each constructor gives its cheapest form."""
    e, expected = FOLDED[name]
    assert expr_text(e) == expected


def test_float_sums_are_not_reordered() -> None:
    """Adding zero to a float is kept: it turns -0.0 into 0.0."""
    assert isinstance(build.add(REAL, 0.0), Binary)
    assert build.div(build.float_const(1.0), 3.0) == FloatImm(0.3333333432674408)
    assert isinstance(build.logical_not(build.lt(REAL, 0.0)), Unary)


WRONG: dict[str, Callable[[], Expr]] = {
    "mixed types": lambda: build.add(X, WIDE),
    "literal too large": lambda: build.const(300, DType.INT8),
    "literal too large for the other": lambda: build.add(BYTE, 300),
    "fraction beside an integer": lambda: build.mul(X, 0.5),
    "float as integer literal": lambda: build.const(1, DType.FLOAT32),
    "integer as float literal": lambda: build.float_const(1.0, DType.INT8),
    "wide index": lambda: build.index(WIDE),
    "number as condition": lambda: build.logical_and(X),
    "number as opposite": lambda: build.logical_not(X),
    "select of numbers": lambda: build.select(X, 1, 2),
    "branches of different types": lambda: build.select(build.lt(X, 1), X, WIDE),
    "too few arguments": lambda: build.call(Intrinsic.EXP),
    "argument of another type": lambda: build.call(Intrinsic.EXP, X),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_types_are_refused(name: str) -> None:
    """A constructor refuses operands that its node could not have."""
    with pytest.raises(TirError):
        WRONG[name]()


def evaluate(e: Expr, x: int) -> int:
    """The value of an expression in X; UndefinedError if it has none."""
    match e:
        case IntImm(value):
            return value
        case Binary(op, a, b):
            return int(arithmetic.binary(op, a.dtype, evaluate(a, x), evaluate(b, x)))
        case Unary(UnaryOp.NEG, a):
            return arithmetic.check(-evaluate(a, x), e.dtype)
        case Select(c, t, o):
            return evaluate(t if evaluate(c, x) else o, x)
        case Cast(dtype, value):
            return arithmetic.check(evaluate(value, x), dtype)
        case _:
            return x


_CONSTRUCTORS = {
    BinaryOp.ADD: build.add, BinaryOp.SUB: build.sub, BinaryOp.MUL: build.mul,
    BinaryOp.FLOORDIV: build.floordiv, BinaryOp.FLOORMOD: build.floormod,
    BinaryOp.TRUNCDIV: build.truncdiv, BinaryOp.MIN: build.minimum, BinaryOp.MAX: build.maximum,
    BinaryOp.SHIFT_LEFT: build.shift_left, BinaryOp.SHIFT_RIGHT: build.shift_right,
    BinaryOp.BIT_AND: build.bit_and, BinaryOp.BIT_OR: build.bit_or,
    BinaryOp.BIT_XOR: build.bit_xor,
}  # fmt: skip
_EDGES = st.one_of(st.integers(-5, 5), st.sampled_from([MIN32, MIN32 + 1, MAX32 - 1, MAX32]))


@st.composite
def chains(draw: st.DrawFn) -> tuple[Expr, Expr]:
    """The same chain of operations, built with and without folding."""
    folded: Expr = X if draw(st.booleans()) else IntImm(draw(_EDGES))
    plain = folded
    for op in draw(st.lists(st.sampled_from(sorted(_CONSTRUCTORS, key=str)), max_size=5)):
        number = draw(_EDGES)
        if draw(st.booleans()):
            folded, plain = _CONSTRUCTORS[op](folded, number), Binary(op, plain, IntImm(number))
        else:
            folded, plain = _CONSTRUCTORS[op](number, folded), Binary(op, IntImm(number), plain)
    return folded, plain


@given(chains(), _EDGES)
@settings(max_examples=250)
def test_folding_keeps_every_defined_value(pair: tuple[Expr, Expr], x: int) -> None:
    """Where the plain expression has a value, the folded one has the same."""
    folded, plain = pair
    try:
        expected = evaluate(plain, x)
    except UndefinedError:
        return
    assert evaluate(folded, x) == expected


def test_seq_is_flat() -> None:
    """Sequences are flattened, empty ones vanish, and one statement stands for itself."""
    buffer = Buffer("s", (), DType.INT32, Scope.LOCAL)
    store = Store(buffer, (), IntImm(1))
    assert build.seq(store, None, [Seq((store, Seq(())))]) == Seq((store, store))
    assert build.seq([store]) is store
    assert build.is_empty(build.seq())
    assert not build.is_empty(Allocate(buffer, store))


def test_fresh_variable_is_another_object() -> None:
    """A fresh Var keeps everything but its identity."""
    copy = build.fresh(Var("n", DType.INT64, 1, 5), "m")
    assert copy is not X
    assert (copy.name, copy.dtype, copy.low, copy.high) == ("m", DType.INT64, 1, 5)
