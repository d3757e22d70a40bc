"""Arithmetic of every typed scalar operation of TIR, on exact Python numbers.

Constant folding and the interpreter share these functions, so that folding cannot disagree with
running.  Integers are Python ints, floats are Python floats that already lie on the grid of their
type.  Double rounding is harmless: a double holds more than twice the bits of a float32, so that
computing in double and rounding once more gives the correctly rounded float32 result of
`+ - * /` and of the square root.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from microtir.dtype import DType
from microtir.tir.ir import BinaryOp

Number: TypeAlias = "int | float"


class UndefinedError(ArithmeticError):
    """The operation has no value: overflow, division by zero, shift count out of range."""


def fits(value: int, dtype: DType) -> bool:
    """Return whether an integer is a value of an integer type or of BOOL."""
    return dtype.min <= value <= dtype.max


def check(value: int, dtype: DType) -> int:
    """Return the value itself; UndefinedError if it is not a value of `dtype`."""
    if not dtype.min <= value <= dtype.max:
        raise UndefinedError(f"{value} does not fit {dtype.value} [{dtype.min}, {dtype.max}]")
    return value


def round_float(value: float, dtype: DType) -> float:
    """Return the nearest value of a floating-point type, infinite where it overflows."""
    if dtype is DType.FLOAT64:
        return value
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def convert(value: Number, source: DType, target: DType) -> Number:
    """Return the meaning of Cast; UndefinedError if the value lies outside the target type."""
    if target.is_float:
        result = round_float(float(value), target)
        if math.isinf(result) and not (source.is_float and math.isinf(value)):
            raise UndefinedError(f"{value} does not fit {target.value}")
        return result
    if source.is_float:
        if not math.isfinite(value):
            raise UndefinedError(f"{value} does not fit {target.value}")
        value = math.trunc(value)
    return check(int(value), target)


def truncated_division(a: int, b: int) -> int:
    """Divide integers and round towards zero; `b` is not zero."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def binary(op: BinaryOp, dtype: DType, a: Number, b: Number) -> Number:
    """Return the value of `a op b` in type `dtype`; AND and OR take two evaluated operands.

    Raises:
        UndefinedError: the result does not exist or does not fit the type.
    """
    if op in _COMPARISONS:
        return _COMPARISONS[op](a, b)
    if op is BinaryOp.AND:
        return bool(a) and bool(b)
    if op is BinaryOp.OR:
        return bool(a) or bool(b)
    # As the C expressions `a < b ? a : b` and `a > b ? a : b`: a NaN selects the right operand.
    if op is BinaryOp.MIN:
        return a if a < b else b
    if op is BinaryOp.MAX:
        return a if a > b else b
    if dtype.is_float:
        return _float_binary(op, dtype, float(a), float(b))
    return check(_integer_binary(op, dtype, int(a), int(b)), dtype)


def _float_binary(op: BinaryOp, dtype: DType, a: float, b: float) -> float:
    if op is BinaryOp.ADD:
        return round_float(a + b, dtype)
    if op is BinaryOp.SUB:
        return round_float(a - b, dtype)
    if op is BinaryOp.MUL:
        return round_float(a * b, dtype)
    if op is BinaryOp.DIV:
        return divide(a, b, dtype)
    raise UndefinedError(f"{op.value} has no meaning on {dtype.value}")


def divide(a: float, b: float, dtype: DType) -> float:
    """Divide as IEEE does: a zero divisor gives an infinity or NaN, not an error."""
    if b == 0.0:
        if a == 0.0 or math.isnan(a):
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)
    return round_float(a / b, dtype)


def _integer_binary(op: BinaryOp, dtype: DType, a: int, b: int) -> int:
    if op in _EXACT:
        return _EXACT[op](a, b)
    if op in (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV):
        if b == 0:
            raise UndefinedError("division by zero")
        if op is BinaryOp.FLOORMOD and b == -1 and a == dtype.min:  # C computes the quotient, too
            raise UndefinedError("the quotient overflows")
        if op is BinaryOp.TRUNCDIV:
            return truncated_division(a, b)
        return a // b if op is BinaryOp.FLOORDIV else a % b
    if op in (BinaryOp.SHIFT_LEFT, BinaryOp.SHIFT_RIGHT):
        if not 0 <= b < dtype.bits:
            raise UndefinedError(f"shift count {b} is outside [0, {dtype.bits - 1}]")
        return a << b if op is BinaryOp.SHIFT_LEFT else a >> b
    raise UndefinedError(f"{op.value} has no meaning on {dtype.value}")


_EXACT: Mapping[BinaryOp, Callable[[int, int], int]] = MappingProxyType({
    BinaryOp.ADD: operator.add,
    BinaryOp.SUB: operator.sub,
    BinaryOp.MUL: operator.mul,
    BinaryOp.BIT_AND: operator.and_,
    BinaryOp.BIT_OR: operator.or_,
    BinaryOp.BIT_XOR: operator.xor,
})  # fmt: skip

_COMPARISONS: Mapping[BinaryOp, Callable[[Number, Number], bool]] = MappingProxyType({
    BinaryOp.EQ: operator.eq,
    BinaryOp.NE: operator.ne,
    BinaryOp.LT: operator.lt,
    BinaryOp.LE: operator.le,
    BinaryOp.GT: operator.gt,
    BinaryOp.GE: operator.ge,
})  # fmt: skip
