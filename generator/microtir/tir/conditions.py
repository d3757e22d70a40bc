"""Folding constructors of conditions.  `tir.build` offers them."""

from __future__ import annotations

from microtir.errors import TirError
from microtir.tir.dtype import DType
from microtir.tir.ir import Binary, BinaryOp, Expr, IntImm, Select, Unary, UnaryOp
from microtir.tir.literals import FALSE, TRUE, Operand, dtype_for, fold, literal, operands

_MIRRORED = {
    BinaryOp.LT: BinaryOp.GT,
    BinaryOp.LE: BinaryOp.GE,
    BinaryOp.GT: BinaryOp.LT,
    BinaryOp.GE: BinaryOp.LE,
    BinaryOp.EQ: BinaryOp.EQ,
    BinaryOp.NE: BinaryOp.NE,
}
_NEGATED = {
    BinaryOp.LT: BinaryOp.GE,
    BinaryOp.LE: BinaryOp.GT,
    BinaryOp.GT: BinaryOp.LE,
    BinaryOp.GE: BinaryOp.LT,
    BinaryOp.EQ: BinaryOp.NE,
    BinaryOp.NE: BinaryOp.EQ,
}


def compare(op: BinaryOp, a: Operand, b: Operand) -> Expr:
    """Compare two values by one of the six comparisons."""
    x, y = operands(op, a, b)
    folded = fold(op, x, y)
    if folded is not None:
        return folded
    if isinstance(x, IntImm):
        op, x, y = _MIRRORED[op], y, x
    if x.dtype.is_int and x == y:
        return TRUE if op in (BinaryOp.LE, BinaryOp.GE, BinaryOp.EQ) else FALSE
    return Binary(op, x, y)


def lt(a: Operand, b: Operand) -> Expr:
    """Return the condition a < b."""
    return compare(BinaryOp.LT, a, b)


def le(a: Operand, b: Operand) -> Expr:
    """Return the condition a <= b."""
    return compare(BinaryOp.LE, a, b)


def gt(a: Operand, b: Operand) -> Expr:
    """Return the condition a > b."""
    return compare(BinaryOp.GT, a, b)


def ge(a: Operand, b: Operand) -> Expr:
    """Return the condition a >= b."""
    return compare(BinaryOp.GE, a, b)


def eq(a: Operand, b: Operand) -> Expr:
    """Return the condition a == b."""
    return compare(BinaryOp.EQ, a, b)


def ne(a: Operand, b: Operand) -> Expr:
    """Return the condition a != b."""
    return compare(BinaryOp.NE, a, b)


def logical_and(*conditions: Expr) -> Expr:
    """Join conditions, evaluated from left to right until one is false; TRUE for none."""
    return _logical(BinaryOp.AND, TRUE, FALSE, conditions)


def logical_or(*conditions: Expr) -> Expr:
    """Join conditions, evaluated from left to right until one is true; FALSE for none."""
    return _logical(BinaryOp.OR, FALSE, TRUE, conditions)


def _logical(op: BinaryOp, neutral: IntImm, decisive: IntImm, items: tuple[Expr, ...]) -> Expr:
    result: Expr = neutral
    for item in items:
        _require_bool(op.value, item)
        if decisive in (result, item):
            result = decisive
        elif item != neutral:
            result = item if result == neutral else Binary(op, result, item)
    return result


def logical_not(a: Expr) -> Expr:
    """Return the opposite of a condition; comparisons of integers are turned round."""
    _require_bool("not", a)
    if isinstance(a, IntImm):
        return FALSE if a.value else TRUE
    if isinstance(a, Unary) and a.op is UnaryOp.NOT:
        return a.a
    if isinstance(a, Binary) and a.op in _NEGATED and not a.a.dtype.is_float:
        return Binary(_NEGATED[a.op], a.a, a.b)
    return Unary(UnaryOp.NOT, a)


def select(condition: Expr, then: Operand, otherwise: Operand) -> Expr:
    """Return `then` where the condition holds, else `otherwise`; the other one is not evaluated."""
    _require_bool("select", condition)
    if isinstance(then, int | float):
        then = literal(then, dtype_for(then, otherwise))
    if isinstance(otherwise, int | float):
        otherwise = literal(otherwise, then.dtype)
    if then.dtype is not otherwise.dtype:
        raise TirError(
            f"branches of select have different types {then.dtype.value}"
            f" and {otherwise.dtype.value}",
            fix="cast one of them",
        )
    if isinstance(condition, IntImm):
        return then if condition.value else otherwise
    return then if then == otherwise else Select(condition, then, otherwise)


def _require_bool(what: str, condition: Expr) -> None:
    if condition.dtype is not DType.BOOL:
        raise TirError(f"'{what}' needs a bool, not {condition.dtype.value}", fix="compare it")
