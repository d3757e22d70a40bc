"""Literals of TIR: made, checked and read.  `tir.build` offers the ones that others need."""

from __future__ import annotations

from microtir.errors import TirError
from microtir.tir import arithmetic
from microtir.tir.dtype import DType
from microtir.tir.ir import Expr, FloatImm, IntImm

TRUE = IntImm(1, DType.BOOL)
FALSE = IntImm(0, DType.BOOL)


def const(value: int, dtype: DType = DType.INT32) -> IntImm:
    """A literal of an integer type or of BOOL; TirError if the value does not fit."""
    if dtype.is_float:
        raise TirError(f"const makes integers, not {dtype.value}", fix="use float_const")
    if not arithmetic.fits(int(value), dtype):
        raise TirError(
            f"literal {value} does not fit {dtype.value}", legal=f"[{dtype.min}, {dtype.max}]"
        )
    return IntImm(int(value), dtype)


def float_const(value: float, dtype: DType = DType.FLOAT32) -> FloatImm:
    """The nearest value of a floating-point type."""
    if not dtype.is_float:
        raise TirError(f"float_const makes floats, not {dtype.value}", fix="use const")
    return FloatImm(arithmetic.round_float(float(value), dtype), dtype)


def literal(value: float, dtype: DType) -> IntImm | FloatImm:
    """A literal of any type; a fraction is refused for integer types."""
    if dtype.is_float:
        return float_const(value, dtype)
    if isinstance(value, float):
        raise TirError(f"the fraction {value} cannot become {dtype.value}")
    return const(value, dtype)


def index(i: int | Expr) -> Expr:
    """An index expression: an int becomes an INT32 literal."""
    if isinstance(i, int):
        return const(i)
    if i.dtype is not DType.INT32:
        raise TirError(f"an index must be int32, not {i.dtype.value}", fix="cast it")
    return i


def int_value(e: Expr) -> int | None:
    """The value of an integer or BOOL literal, None for anything else."""
    return e.value if isinstance(e, IntImm) else None


def number(e: Expr) -> float | None:
    return e.value if isinstance(e, IntImm | FloatImm) else None
