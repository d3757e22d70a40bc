"""Literals of TIR: made, read, folded.  `tir.build` offers what others need."""

from __future__ import annotations

from typing import TypeAlias

from microtir.dtype import DType
from microtir.errors import TirError
from microtir.tir import arithmetic
from microtir.tir.arithmetic import UndefinedError
from microtir.tir.ir import BinaryOp, Expr, FloatImm, IntImm

Operand: TypeAlias = Expr | int | float

TRUE = IntImm(1, DType.BOOL)
FALSE = IntImm(0, DType.BOOL)


def const(value: int, dtype: DType = DType.INT32) -> IntImm:
    """Make a literal of an integer type or of BOOL; TirError if the value does not fit."""
    if dtype.is_float:
        raise TirError(f"const creates integers, not {dtype.value}", fix="use float_const")
    if not arithmetic.fits(int(value), dtype):
        raise TirError(
            f"literal {value} does not fit {dtype.value}", legal=f"[{dtype.min}, {dtype.max}]"
        )
    return IntImm(int(value), dtype)


def float_const(value: float, dtype: DType = DType.FLOAT32) -> FloatImm:
    """Return the nearest value of a floating-point type."""
    if not dtype.is_float:
        raise TirError(f"float_const creates floats, not {dtype.value}", fix="use const")
    return FloatImm(arithmetic.round_float(float(value), dtype), dtype)


def literal(value: float, dtype: DType) -> IntImm | FloatImm:
    """Make a literal of any type; a fraction is refused for integer types."""
    if dtype.is_float:
        return float_const(value, dtype)
    if isinstance(value, float):
        raise TirError(f"the fraction {value} cannot be converted to {dtype.value}")
    return const(value, dtype)


def index(i: int | Expr) -> Expr:
    """Return an index expression: an int becomes an INT32 literal."""
    if isinstance(i, int):
        return const(i)
    if i.dtype is not DType.INT32:
        raise TirError(
            f"an index must be int32, not {i.dtype.value}", fix="convert the index with cast"
        )
    return i


def int_value(e: Expr) -> int | None:
    """Return the value of an integer or BOOL literal, None for anything else."""
    return e.value if isinstance(e, IntImm) else None


def number(e: Expr) -> float | None:
    """Return the value of a literal, None for anything else."""
    return e.value if isinstance(e, IntImm | FloatImm) else None


def operands(op: BinaryOp, a: Operand, b: Operand) -> tuple[Expr, Expr]:
    """Return both operands as expressions of one type; TirError if their types differ."""
    if isinstance(a, int | float):
        a = literal(a, dtype_for(a, b))
    if isinstance(b, int | float):
        b = literal(b, dtype_for(b, a))
    if a.dtype is not b.dtype:
        raise TirError(
            f"the operands of '{op.value}' have the types {a.dtype.value} and {b.dtype.value}",
            fix="cast one of them",
        )
    return a, b


def dtype_for(value: Operand, other: Operand) -> DType:
    """Return the type that a number takes beside another operand."""
    if not isinstance(other, int | float):
        return other.dtype
    return DType.FLOAT32 if isinstance(value, float) or isinstance(other, float) else DType.INT32


def fold(op: BinaryOp, a: Expr, b: Expr) -> Expr | None:
    """Return the literal result if both operands are literals and the result exists."""
    x, y = number(a), number(b)
    if x is None or y is None:
        return None
    try:
        value = arithmetic.binary(op, a.dtype, x, y)
    except UndefinedError:
        return None
    if op.is_comparison or op in (BinaryOp.AND, BinaryOp.OR):
        return TRUE if value else FALSE
    return literal(value, a.dtype)


def constant_right(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Return the operands of a commutative operator, an integer literal last."""
    return (b, a) if isinstance(a, IntImm) and not isinstance(b, IntImm) else (a, b)
