"""The text of single expressions: types, precedence, and nothing that C leaves open."""

from __future__ import annotations

import math

import pytest

from microtir.codegen.printer.expressions import ExpressionPrinter, Requirements
from microtir.codegen.printer.names import ScopedNames
from microtir.dtype import DType
from microtir.tir.analysis.bounds import Bounds
from microtir.tir.analysis.interval import Interval
from microtir.tir.ir import (
    Binary,
    BinaryOp,
    Buffer,
    Call,
    Cast,
    Expr,
    FloatImm,
    IntImm,
    Intrinsic,
    Load,
    Scope,
    Select,
    Unary,
    UnaryOp,
    Var,
)

I8, I32, I64, U32, F32 = DType.INT8, DType.INT32, DType.INT64, DType.UINT32, DType.FLOAT32
i, j = Var("i"), Var("j")
row = Var("row", low=0, high=9)
wide = Var("wide", I64)
bits = Var("bits", U32)
flag = Var("flag", DType.BOOL)
ratio = Var("ratio", F32)
data = Buffer("data", (4, 5), I8)
table = Buffer("table", (256,), DType.INT16)
acc = Buffer("acc", (), I32, Scope.LOCAL)
element = Load(data, (i, j))
Op = BinaryOp


def _printer() -> ExpressionPrinter:
    names = ScopedNames(())
    for item in (i, j, row, wide, bits, flag, ratio, data, table, acc):
        names.define(item)
    bounds = Bounds({i: Interval(-100, 100), j: Interval(0, 4)})
    return ExpressionPrinter(names, Requirements(set()), bounds)


def _text(e: Expr) -> str:
    return _printer().expr(e).text


def _int(value: int, dtype: DType = I32) -> IntImm:
    return IntImm(value, dtype)


CASES: dict[str, Expr] = {
    # precedence
    "i + j + 1": Binary(Op.ADD, Binary(Op.ADD, i, j), _int(1)),
    "i + (j + 1)": Binary(Op.ADD, i, Binary(Op.ADD, j, _int(1))),
    "i - (j - 1)": Binary(Op.SUB, i, Binary(Op.SUB, j, _int(1))),
    "(i + j) * 3": Binary(Op.MUL, Binary(Op.ADD, i, j), _int(3)),
    "i * j + 3": Binary(Op.ADD, Binary(Op.MUL, i, j), _int(3)),
    "i + j < 3": Binary(Op.LT, Binary(Op.ADD, i, j), _int(3)),
    "(i < j) == (j < 3)": Binary(Op.EQ, Binary(Op.LT, i, j), Binary(Op.LT, j, _int(3))),
    "i < 3 && (j < 3 || i == j)": Binary(
        Op.AND,
        Binary(Op.LT, i, _int(3)),
        Binary(Op.OR, Binary(Op.LT, j, _int(3)), Binary(Op.EQ, i, j)),
    ),
    "(i & 7) + j": Binary(Op.ADD, Binary(Op.BIT_AND, i, _int(7)), j),
    "(i + j) & 7": Binary(Op.BIT_AND, Binary(Op.ADD, i, j), _int(7)),
    "(i & 7) | j": Binary(Op.BIT_OR, Binary(Op.BIT_AND, i, _int(7)), j),
    "i ^ j ^ 7": Binary(Op.BIT_XOR, Binary(Op.BIT_XOR, i, j), _int(7)),
    "(i < 3 ? i : j) + 1": Binary(Op.ADD, Select(Binary(Op.LT, i, _int(3)), i, j), _int(1)),
    "-(i + j)": Unary(UnaryOp.NEG, Binary(Op.ADD, i, j)),
    "-(-i)": Unary(UnaryOp.NEG, Unary(UnaryOp.NEG, i)),
    "!(i < j)": Unary(UnaryOp.NOT, Binary(Op.LT, i, j)),
    "!flag": Unary(UnaryOp.NOT, flag),
    # negative literals
    "i - 5": Binary(Op.ADD, i, _int(-5)),
    "i + 5": Binary(Op.SUB, i, _int(-5)),
    "i * -5": Binary(Op.MUL, i, _int(-5)),
    "i + INT32_MIN": Binary(Op.ADD, i, _int(I32.min)),
    "wide + INT64_MIN": Binary(Op.ADD, wide, _int(I64.min, I64)),
    "wide - INT64_C(5000000000)": Binary(Op.ADD, wide, _int(-5000000000, I64)),
    # types: one operand of the type is enough, two literals are not
    "INT32_C(300) * 300": Binary(Op.MUL, _int(300), _int(300)),
    "(int32_t)-300 * 300": Binary(Op.MUL, _int(-300), _int(300)),
    "300 * i": Binary(Op.MUL, _int(300), i),
    "(int32_t)data[i * 5 + j] * 3": Binary(Op.MUL, Cast(I32, element), _int(3)),
    "(int32_t)(data[i * 5 + j] + 3)": Cast(I32, Binary(Op.ADD, element, _int(3, I8))),
    "(int32_t)(uint8_t)data[i * 5 + j]": Binary(Op.BIT_AND, Cast(I32, element), _int(255)),
    "(int64_t)i * wide": Binary(Op.MUL, Cast(I64, i), wide),
    "INT64_C(2) * 3": Binary(Op.MUL, _int(2, I64), _int(3, I64)),
    "bits + 5u": Binary(Op.ADD, bits, _int(5, U32)),
    "bits + UINT32_C(4000000000)": Binary(Op.ADD, bits, _int(4000000000, U32)),
    "(float)i / 2.0f": Binary(Op.DIV, Cast(F32, i), FloatImm(2.0)),
    "(int32_t)ratio": Cast(I32, ratio),
    "(int32_t)(i < j)": Cast(I32, Binary(Op.LT, i, j)),
    # shifts
    "i * 8": Binary(Op.SHIFT_LEFT, i, _int(3)),
    "shift_left_i32(i, j)": Binary(Op.SHIFT_LEFT, i, j),
    "shift_left_i32(i, 31)": Binary(Op.SHIFT_LEFT, i, _int(31)),
    "shift_right_i32(i, 3)": Binary(Op.SHIFT_RIGHT, i, _int(3)),
    "shift_right_i64(wide, 3)": Binary(Op.SHIFT_RIGHT, wide, _int(3, I64)),
    "bits << 3u": Binary(Op.SHIFT_LEFT, bits, _int(3, U32)),
    "UINT32_C(1) << bits": Binary(Op.SHIFT_LEFT, _int(1, U32), bits),
    "(bits + 1u) >> 3u": Binary(Op.SHIFT_RIGHT, Binary(Op.ADD, bits, _int(1, U32)), _int(3, U32)),
    # division
    "row / 2": Binary(Op.FLOORDIV, row, _int(2)),
    "(row + j) % 3": Binary(Op.FLOORMOD, Binary(Op.ADD, row, j), _int(3)),
    "floor_div_i32(i, 2)": Binary(Op.FLOORDIV, i, _int(2)),
    "(i + 102) % 3": Binary(Op.FLOORMOD, i, _int(3)),
    "(i + 101) % 3": Binary(Op.FLOORMOD, Binary(Op.SUB, i, _int(1)), _int(3)),
    "floor_mod_i32(i, -3)": Binary(Op.FLOORMOD, i, _int(-3)),
    "floor_mod_i64(wide, 3)": Binary(Op.FLOORMOD, wide, _int(3, I64)),
    "floor_div_i32(row, -2)": Binary(Op.FLOORDIV, row, _int(-2)),
    "i / 2": Binary(Op.TRUNCDIV, i, _int(2)),
    # calls
    "min_i32(max_i32(i, -128), 127)": Binary(Op.MIN, Binary(Op.MAX, i, _int(-128)), _int(127)),
    "max_i32(data[i * 5 + j], 0)": Binary(Op.MAX, element, _int(0, I8)),
    "min_f32(ratio, 6.0f)": Binary(Op.MIN, ratio, FloatImm(6.0)),
    "expf(-ratio)": Call(Intrinsic.EXP, (Unary(UnaryOp.NEG, ratio),), F32),
    "rounding_divide_by_pot(i, 3)": Call(Intrinsic.ROUNDING_DIVIDE_BY_POT, (i, _int(3)), I32),
    # memory
    "data[3]": Load(data, (_int(0), _int(3))),
    "data[(i + 1) * 5 + j]": Load(data, (Binary(Op.ADD, i, _int(1)), j)),
    "table[(int32_t)data[i * 5 + j] + 128]": Load(
        table, (Binary(Op.ADD, Cast(I32, element), _int(128)),)
    ),
    "acc": Load(acc, ()),
    # floats
    "ratio - 0.1f": Binary(Op.ADD, ratio, FloatImm(-0.10000000149011612)),
    "ratio * -0.0f": Binary(Op.MUL, ratio, FloatImm(-0.0)),
    "min_f32(ratio, INFINITY)": Binary(Op.MIN, ratio, FloatImm(math.inf)),
}


@pytest.mark.parametrize("expected", CASES)
def test_text(expected: str) -> None:
    """The expression is printed as a person would write it, with the casts that C needs."""
    assert _text(CASES[expected]) == expected


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (FloatImm(0.1, DType.FLOAT64), DType.FLOAT64, "0.1"),
        (FloatImm(1e-8), F32, "1e-08f"),
        (FloatImm(-math.inf), F32, "-INFINITY"),
        (FloatImm(math.nan), F32, "NAN"),
    ],
)
def test_float_literals(value: FloatImm, dtype: DType, text: str) -> None:
    """Floating-point literals are the shortest that read back as the same value."""
    assert _text(value) == text


def test_value_is_cast_to_a_narrow_type() -> None:
    """What C computed as int is cast where it is stored; what has the type already is not."""
    printer = _printer()
    assert printer.value(Binary(Op.ADD, element, _int(3, I8))) == "(int8_t)(data[i * 5 + j] + 3)"
    assert printer.value(element) == "data[i * 5 + j]"
    assert printer.value(_int(-128, I8)) == "-128"
    assert printer.value(Binary(Op.LT, i, j)) == "(uint8_t)(i < j)"
    assert printer.value(Binary(Op.ADD, i, j)) == "i + j"


def test_helpers_and_headers_are_recorded() -> None:
    """The printer says which helpers and headers its text needs, and no others."""
    printer = _printer()
    printer.expr(Binary(Op.MIN, i, j))
    assert printer.requirements == Requirements({"min_i32"}, math=False)
    printer.expr(Call(Intrinsic.TANH, (ratio,), F32))
    assert printer.requirements.math
