"""Simplification of expressions with what is known where they stand.

Every rewrite keeps the value of the expression wherever it has one, and adds no overflow: a sum
is only put together anew if the intervals of all its parts fit the type.
"""

from __future__ import annotations

from microtir.dtype import DType
from microtir.tir import build, ir
from microtir.tir.analysis.facts import Facts
from microtir.tir.analysis.interval import Interval
from microtir.tir.analysis.terms import Terms, cannot_overflow, collect, rebuild
from microtir.tir.visitor import Rewriter


class ExprSimplifier(Rewriter):
    """Rewrites expressions bottom up; `facts` is kept up to date by whoever walks statements."""

    def __init__(self) -> None:
        self.facts = Facts()

    def expr(self, e: ir.Expr) -> ir.Expr:
        new = self._parts(e)
        if not isinstance(new, ir.IntImm | ir.FloatImm | ir.Var | ir.Load):
            new = self._known(new)
        return e if new == e else new

    def holds(self, condition: ir.Expr) -> bool:
        """Return whether a condition is quickly seen to hold here."""
        return self.facts.prove(condition, thorough=False)

    def _parts(self, e: ir.Expr) -> ir.Expr:
        """Rebuild an expression from simplified parts, constants folded."""
        match e:
            case ir.Var():
                return self._known(e)
            case ir.IntImm() | ir.FloatImm() | ir.Load():
                return self.expr_parts(e)
            case ir.Binary(ir.BinaryOp.AND | ir.BinaryOp.OR as op, a, b):
                first = self.expr(a)
                with self.facts.assuming(first, truth=op is ir.BinaryOp.AND):
                    second = self.expr(b)
                join = build.logical_and if op is ir.BinaryOp.AND else build.logical_or
                return join(first, second)
            case ir.Binary(op, a, b):
                return binary(op, self.expr(a), self.expr(b))
            case ir.Unary(op, a):
                return (build.neg if op is ir.UnaryOp.NEG else build.logical_not)(self.expr(a))
            case ir.Cast(dtype, value):
                return self._cast(dtype, self.expr(value))
            case ir.Select(condition, then, otherwise):
                return self._select(self.expr(condition), then, otherwise)
            case ir.Call(intrinsic, args):
                return build.call(intrinsic, *self.exprs(args))

    def _select(self, condition: ir.Expr, then: ir.Expr, otherwise: ir.Expr) -> ir.Expr:
        if isinstance(condition, ir.IntImm):
            return self.expr(then if condition.value else otherwise)
        with self.facts.assuming(condition):
            first = self.expr(then)
        with self.facts.assuming(condition, truth=False):
            second = self.expr(otherwise)
        if isinstance(condition, ir.Unary):  # not c ? a : b
            return build.select(condition.a, second, first)
        return build.select(condition, first, second)

    def _cast(self, dtype: DType, value: ir.Expr) -> ir.Expr:
        """Drop a cast inside a cast that changes nothing."""
        if isinstance(value, ir.Cast) and value.dtype.is_int and value.value.dtype.is_int:
            inner = self.facts.interval(value.value)
            if inner.within(Interval.of_type(value.dtype)):
                return build.cast(dtype, value.value)
        return build.cast(dtype, value)

    def _known(self, e: ir.Expr) -> ir.Expr:
        """Return a literal if only one value is possible, else the cheapest known form."""
        if e.dtype.is_float:
            return e
        interval = self.facts.bounds.of(e)
        if interval.is_point and interval.low in Interval.of_type(e.dtype):
            return build.const(interval.low, e.dtype)
        if isinstance(e, ir.Unary) and e.op is ir.UnaryOp.NEG:
            return self._sum(e)
        if not isinstance(e, ir.Binary):
            return e
        if e.dtype is DType.BOOL:
            return self._condition(e)
        if e.op in (ir.BinaryOp.ADD, ir.BinaryOp.SUB, ir.BinaryOp.MUL):
            return self._sum(e)
        if e.op in (ir.BinaryOp.MIN, ir.BinaryOp.MAX):
            return self._extremum(e)
        if e.op in (ir.BinaryOp.FLOORDIV, ir.BinaryOp.FLOORMOD):
            return self._division(e)
        return e

    def _condition(self, e: ir.Binary) -> ir.Expr:
        if not e.op.is_comparison or not e.a.dtype.is_int:
            return e
        if self.holds(e):
            return build.TRUE
        if self.holds(build.logical_not(e)):
            return build.FALSE
        return self._constant_moved_right(e)

    def _constant_moved_right(self, e: ir.Binary) -> ir.Expr:
        """Turn x + 3 < 10 into x < 7."""
        terms = collect(e.a)
        if not isinstance(e.b, ir.IntImm) or not terms.constant:
            return e
        limit = e.b.value - terms.constant
        left = self._rebuilt(e.a, Terms(terms.factors, 0))
        is_plain = any(f > 0 for f in terms.factors.values())
        if left is None or not is_plain or limit not in Interval.of_type(e.a.dtype):
            return e
        return build.compare(e.op, left, build.const(limit, e.a.dtype))

    def _extremum(self, e: ir.Binary) -> ir.Expr:
        lower, higher = (e.a, e.b) if e.op is ir.BinaryOp.MIN else (e.b, e.a)
        if self.holds(build.le(lower, higher)):
            return e.a
        if self.holds(build.le(higher, lower)):
            return e.b
        return e

    def _sum(self, e: ir.Binary | ir.Unary) -> ir.Expr:
        """Merge equal terms, lets opposite ones cancel, and puts the constant last."""
        terms = collect(e)
        is_tidy = terms.count == terms.leaves and terms.constant_is_last
        if is_tidy and (isinstance(e, ir.Binary) or not terms.constant):
            return e
        return self._rebuilt(e, terms) or e

    def _division(self, e: ir.Binary) -> ir.Expr:
        divisor = build.int_value(e.b)
        if divisor is None or divisor <= 0:
            return e
        terms = collect(e.a)
        whole, rest = terms.divided(divisor)
        remainder = self._rebuilt(e.a, rest)
        if remainder is None:
            return e
        interval = self.facts.interval(remainder)
        block = interval.low // divisor
        if block == interval.high // divisor:
            if e.op is ir.BinaryOp.FLOORMOD:
                return self._rebuilt(e, rest.plus(-block * divisor)) or e
            return self._rebuilt(e, whole.plus(block)) or e
        if e.op is ir.BinaryOp.FLOORMOD:
            is_reduced = not whole.factors and abs(terms.constant) < divisor
            return e if is_reduced else build.floormod(remainder, e.b)
        if not whole.factors:
            return e
        dividend = self._rebuilt(e.a, Terms(rest.factors, terms.constant))
        if dividend is None:
            return e
        return (
            self._rebuilt(e, Terms(whole.factors, 0).with_term(build.floordiv(dividend, e.b))) or e
        )

    def _rebuilt(self, original: ir.Expr, terms: Terms) -> ir.Expr | None:
        """Return the sum of terms, or None if a partial sum might overflow."""
        new = rebuild(terms, original.dtype)
        return new if new is not None and cannot_overflow(self.facts, new) else None


def binary(op: ir.BinaryOp, a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """Return `a op b` through the folding constructor of the operator."""
    if op.is_comparison:
        return build.compare(op, a, b)
    return _CONSTRUCTORS[op](a, b)


_CONSTRUCTORS = {
    ir.BinaryOp.ADD: build.add,
    ir.BinaryOp.SUB: build.sub,
    ir.BinaryOp.MUL: build.mul,
    ir.BinaryOp.DIV: build.div,
    ir.BinaryOp.FLOORDIV: build.floordiv,
    ir.BinaryOp.FLOORMOD: build.floormod,
    ir.BinaryOp.TRUNCDIV: build.truncdiv,
    ir.BinaryOp.MIN: build.minimum,
    ir.BinaryOp.MAX: build.maximum,
    ir.BinaryOp.SHIFT_LEFT: build.shift_left,
    ir.BinaryOp.SHIFT_RIGHT: build.shift_right,
    ir.BinaryOp.BIT_AND: build.bit_and,
    ir.BinaryOp.BIT_OR: build.bit_or,
    ir.BinaryOp.BIT_XOR: build.bit_xor,
}
