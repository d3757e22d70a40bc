"""Ranges of integer expressions in many executions at once: `tir.analysis.bounds` as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from microtir.dtype import DType
from microtir.tir.analysis.bounds import Bounds
from microtir.tir.analysis.interval import Interval
from microtir.tir.ir import Binary, BinaryOp, Cast, Expr, IntImm, Load, Select, Unary, UnaryOp, Var

_WIDE = (DType.INT64, DType.UINT64)

Values: TypeAlias = npt.NDArray[np.int64]
Range: TypeAlias = tuple[Values, Values]
"""The lowest and the highest value in each execution, or in all of them."""


class Ranges:
    """Interval arithmetic, of values of up to 32 bits: those of 64 bits may be any.

    Args:
        known: of variables; another one has the range of its declaration or its type.
    """

    def __init__(self, known: Mapping[Var, Range]) -> None:
        self._known = known

    def of(self, e: Expr) -> Range:
        """Return values that an integer or BOOL expression may have."""
        if e.dtype in _WIDE:
            return _range(DType.INT64.min, DType.INT64.max)
        match e:
            case Var():
                return self._known.get(e) or _range(*_declared(e))
            case IntImm(value):
                return _range(value, value)
            case Binary():
                return self._binary(e)
            case Unary(op, a) if not a.dtype.is_float:
                low, high = self.of(a)
                return (1 - high, 1 - low) if op is UnaryOp.NOT else (-high, -low)
            case Cast(_, value) if value.dtype.is_int and value.dtype not in _WIDE:
                return self.of(value)
            case Select(condition, then, otherwise):
                yes = self.may_be(condition, truth=True)
                no = self.may_be(condition, truth=False)
                (low, high), (other_low, other_high) = self.of(then), self.of(otherwise)
                return (
                    np.where(yes, np.where(no, np.minimum(low, other_low), low), other_low),
                    np.where(yes, np.where(no, np.maximum(high, other_high), high), other_high),
                )
            case Load(buffer):
                known = Bounds().buffer(buffer)
                return _range(known.low, known.high)
            case _:
                return _of_type(e)

    def may_be(self, condition: Expr, *, truth: bool) -> npt.NDArray[np.bool_]:
        low, high = self.of(condition)
        return high > 0 if truth else low < 1

    def _binary(self, e: Binary) -> Range:
        if e.a.dtype.is_float:
            return _of_type(e)
        (a, a_high), (b, b_high) = self.of(e.a), self.of(e.b)
        match e.op:
            case BinaryOp.ADD:
                return a + b, a_high + b_high
            case BinaryOp.SUB:
                return a - b_high, a_high - b
            case BinaryOp.MUL:
                if e.dtype is DType.UINT32 and not isinstance(e.b, IntImm):
                    return _of_type(e)  # the product of the largest ones has 64 bits
                corners = (a * b, a * b_high, a_high * b, a_high * b_high)
                # What does not fit its type is no value.
                low, high = np.minimum.reduce(corners), np.maximum.reduce(corners)
                return np.maximum(low, e.dtype.min), np.minimum(high, e.dtype.max)
            case BinaryOp.MIN:
                return np.minimum(a, b), np.minimum(a_high, b_high)
            case BinaryOp.MAX:
                return np.maximum(a, b), np.maximum(a_high, b_high)
            case BinaryOp.FLOORDIV | BinaryOp.FLOORMOD if isinstance(e.b, IntImm) and e.b.value > 0:
                turn, last_turn = a // b, a_high // b
                if e.op is BinaryOp.FLOORDIV:
                    return turn, last_turn
                same = turn == last_turn
                return np.where(same, a % b, 0), np.where(same, a_high % b, b - 1)
            case BinaryOp.AND:
                return np.minimum(a, b), np.minimum(a_high, b_high)
            case BinaryOp.OR:
                return np.maximum(a, b), np.maximum(a_high, b_high)
            case BinaryOp.LT:
                return _truth(a_high < b, a < b_high)
            case BinaryOp.LE:
                return _truth(a_high <= b, a <= b_high)
            case BinaryOp.GT:
                return _truth(a > b_high, a_high > b)
            case BinaryOp.GE:
                return _truth(a >= b_high, a_high >= b)
            case BinaryOp.EQ:
                return _truth((a == b_high) & (a_high == b), (a <= b_high) & (b <= a_high))
            case BinaryOp.NE:
                return _truth((a > b_high) | (b > a_high), (a != b_high) | (a_high != b))
            case _:
                return _of_type(e)


def _range(low: int, high: int) -> Range:
    return np.array(low, np.int64), np.array(high, np.int64)


def _truth(surely: npt.NDArray[np.bool_], perhaps: npt.NDArray[np.bool_]) -> Range:
    return np.asarray(surely).astype(np.int64), np.asarray(perhaps).astype(np.int64)


def _declared(var: Var) -> tuple[int, int]:
    whole = Interval.of_type(var.dtype)
    low = whole.low if var.low is None else var.low
    return low, whole.high if var.high is None else var.high


def _of_type(e: Expr) -> Range:
    if e.dtype.is_float:
        return _range(0, 1)  # asked for by comparisons only, which may then have either value
    whole = Interval.of_type(e.dtype)
    return _range(whole.low, whole.high)
