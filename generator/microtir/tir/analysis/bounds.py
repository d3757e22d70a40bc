"""Interval of an integer expression, from the ranges of its Vars and the types of its loads."""

from __future__ import annotations

from collections.abc import Mapping

from microtir.errors import TirError
from microtir.tir import ir
from microtir.tir.analysis.interval import Interval, corners
from microtir.tir.arithmetic import truncated_division
from microtir.tir.intrinsics import SIGNATURES

_BOOL = Interval(0, 1)


class Bounds:
    """Interval arithmetic over expressions.

    `ranges` may be changed between calls; a Var without an entry has its declared range.  What is
    known about constants is computed once per instance.
    """

    def __init__(self, ranges: Mapping[ir.Var, Interval] | None = None) -> None:
        self.ranges: dict[ir.Var, Interval] = dict(ranges or {})
        self._constants: dict[ir.Buffer, Interval] = {}

    def of(self, e: ir.Expr) -> Interval:
        """Return the smallest interval known to hold an integer or BOOL expression.

        Raises:
            TirError: the expression is floating point.
        """
        if e.dtype.is_float:
            raise TirError("a floating-point expression has no integer interval")
        match e:
            case ir.Var():
                return self.ranges.get(e) or declared_range(e)
            case ir.IntImm(value):
                return Interval(value, value)
            case ir.Binary():
                return self._binary(e)
            case ir.Unary(op, a):
                inner = self.of(a)
                if op is ir.UnaryOp.NOT:
                    return Interval(1 - inner.high, 1 - inner.low)
                return (-inner).clamp(e.dtype)
            case ir.Cast(dtype, value):
                whole = Interval.of_type(dtype)
                return whole if value.dtype.is_float else self.of(value).clamp(dtype)
            case ir.Select(condition, then, otherwise):
                known = self.of(condition)
                if known.is_point:
                    return self.of(then if known.low else otherwise)
                return self.of(then).union(self.of(otherwise))
            case ir.Load(buffer):
                return self.buffer(buffer)
            case ir.Call(intrinsic, args):
                bounds = SIGNATURES[intrinsic].bounds
                if bounds is None:
                    return Interval.of_type(e.dtype)
                return bounds(tuple(self.of(a) for a in args))
            case ir.FloatImm():  # whose type is an integer: the verifier's business
                return Interval.of_type(e.dtype)

    def buffer(self, buffer: ir.Buffer) -> Interval:
        """Return the interval of every element: the data of a constant, else the type."""
        if buffer.scope is not ir.Scope.CONSTANT or buffer.data is None or not buffer.data.size:
            return Interval.of_type(buffer.dtype)
        if buffer not in self._constants:
            low, high = int(buffer.data.min()), int(buffer.data.max())
            self._constants[buffer] = Interval(low, high)
        return self._constants[buffer]

    def _binary(self, e: ir.Binary) -> Interval:
        if e.a.dtype.is_float:
            return _BOOL  # a comparison of floats
        a = self.of(e.a)
        if e.op in (ir.BinaryOp.AND, ir.BinaryOp.OR):
            b = self.of(e.b)
            pick = min if e.op is ir.BinaryOp.AND else max
            return Interval(pick(a.low, b.low), pick(a.high, b.high))
        b = self.of(e.b)
        if e.op.is_comparison:
            return _comparison(e.op, a, b)
        if not _defined(e.op, b):
            return Interval.of_type(e.dtype)
        return _arithmetic(e.op, a, b).clamp(e.dtype)


def declared_range(var: ir.Var) -> Interval:
    """Return the range that a parameter declares; where it declares none, that of its type."""
    low = var.dtype.min if var.low is None else var.low
    high = var.dtype.max if var.high is None else var.high
    return Interval(low, max(low, high))


def _defined(op: ir.BinaryOp, b: Interval) -> bool:
    """Return whether the transfer functions below know the operator for such a right operand."""
    if op in (ir.BinaryOp.FLOORDIV, ir.BinaryOp.FLOORMOD, ir.BinaryOp.TRUNCDIV):
        return 0 not in b
    if op in (ir.BinaryOp.SHIFT_LEFT, ir.BinaryOp.SHIFT_RIGHT):
        return b.low >= 0 and b.high < 64
    return True


def _arithmetic(op: ir.BinaryOp, a: Interval, b: Interval) -> Interval:
    if op is ir.BinaryOp.ADD:
        return a + b
    if op is ir.BinaryOp.SUB:
        return a - b
    if op is ir.BinaryOp.MUL:
        return a * b
    if op is ir.BinaryOp.FLOORDIV:
        return corners(int.__floordiv__, a, b)
    if op is ir.BinaryOp.TRUNCDIV:
        return corners(truncated_division, a, b)
    if op is ir.BinaryOp.FLOORMOD:
        return _floormod(a, b)
    if op is ir.BinaryOp.MIN:
        return Interval(min(a.low, b.low), min(a.high, b.high))
    if op is ir.BinaryOp.MAX:
        return Interval(max(a.low, b.low), max(a.high, b.high))
    if op is ir.BinaryOp.SHIFT_LEFT:
        return corners(int.__lshift__, a, b)
    if op is ir.BinaryOp.SHIFT_RIGHT:
        return corners(int.__rshift__, a, b)
    return _bits(op, a, b)


def _floormod(a: Interval, b: Interval) -> Interval:
    if b.low < 0:
        return Interval(min(b.low + 1, 0), max(b.high - 1, 0))
    if b.is_point and a.low // b.low == a.high // b.low:
        return Interval(a.low % b.low, a.high % b.low)
    if a.low >= 0 and a.high < b.low:
        return a
    return Interval(0, b.high - 1)


def _bits(op: ir.BinaryOp, a: Interval, b: Interval) -> Interval:
    """Return the bounds of a bitwise operator: between the nearest powers of two."""
    if op is ir.BinaryOp.BIT_AND and (a.low >= 0 or b.low >= 0):
        # A non-negative operand bounds the result from above.
        return Interval(0, min(i.high for i in (a, b) if i.low >= 0))
    magnitude = max(abs(v) for v in (a.low, a.high, b.low, b.high))
    limit = (1 << magnitude.bit_length()) - 1
    return Interval(0 if a.low >= 0 and b.low >= 0 else -limit - 1, limit)


def _comparison(op: ir.BinaryOp, a: Interval, b: Interval) -> Interval:
    true, false = Interval(1, 1), Interval(0, 0)
    if op in (ir.BinaryOp.GT, ir.BinaryOp.GE):
        mirrored = ir.BinaryOp.LT if op is ir.BinaryOp.GT else ir.BinaryOp.LE
        return _comparison(mirrored, b, a)
    if op is ir.BinaryOp.LT:
        return true if a.high < b.low else false if a.low >= b.high else _BOOL
    if op is ir.BinaryOp.LE:
        return true if a.high <= b.low else false if a.low > b.high else _BOOL
    disjoint = a.intersect(b) is None
    same = a.is_point and a == b
    if op is ir.BinaryOp.EQ:
        return false if disjoint else true if same else _BOOL
    return true if disjoint else false if same else _BOOL
