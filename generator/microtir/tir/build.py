"""Constructors of TIR that fold constants: what everybody uses to make expressions.

An int or float operand takes the type of the other operand.  Folding never adds an error and
never changes a value; where the exact result does not fit its type the operation is left in
place for the verifier and the interpreter to report.  Constants end up on the right.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from microtir.dtype import DType
from microtir.errors import TirError
from microtir.tir import arithmetic
from microtir.tir.arithmetic import UndefinedError
from microtir.tir.intrinsics import SIGNATURES
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
    Select,
    Seq,
    Stmt,
    Unary,
    UnaryOp,
    Var,
)
from microtir.tir.literals import (
    FALSE,
    TRUE,
    Operand,
    const,
    constant_right,
    dtype_for,
    float_const,
    fold,
    index,
    int_value,
    literal,
    number,
    operands,
)

__all__ = [
    "FALSE",
    "NOTHING",
    "TRUE",
    "Operand",
    "add",
    "bit_and",
    "bit_or",
    "bit_xor",
    "call",
    "cast",
    "ceildiv",
    "compare",
    "const",
    "div",
    "eq",
    "float_const",
    "floordiv",
    "floormod",
    "fresh",
    "ge",
    "gt",
    "index",
    "int_value",
    "is_empty",
    "le",
    "linear_index",
    "literal",
    "logical_and",
    "logical_not",
    "logical_or",
    "lt",
    "maximum",
    "minimum",
    "mul",
    "ne",
    "neg",
    "select",
    "seq",
    "shift_left",
    "shift_right",
    "sub",
    "truncdiv",
]  # fmt: skip


# --- sums and products --------------------------------------------------------------------------


def add(a: Operand, b: Operand) -> Expr:
    """Return the sum of two values."""
    x, y = constant_right(*operands(BinaryOp.ADD, a, b))
    folded = fold(BinaryOp.ADD, x, y)
    if folded is not None:
        return folded
    if isinstance(y, IntImm) and x.dtype.is_int:
        return _plus(x, y.value)
    return Binary(BinaryOp.ADD, x, y)


def sub(a: Operand, b: Operand) -> Expr:
    """Return the difference of two values."""
    x, y = operands(BinaryOp.SUB, a, b)
    folded = fold(BinaryOp.SUB, x, y)
    if folded is not None:
        return folded
    if isinstance(y, IntImm) and x.dtype.is_int:
        return _plus(x, -y.value)
    if x.dtype.is_int and x == y:
        return const(0, x.dtype)
    return Binary(BinaryOp.SUB, x, y)


def _plus(x: Expr, offset: int) -> Expr:
    """Return x + offset, merged with the literal that x may end with: a + 3 + 4 becomes a + 7."""
    if isinstance(x, Binary) and isinstance(x.b, IntImm):
        total = offset
        if x.op is BinaryOp.ADD:
            total += x.b.value
        elif x.op is BinaryOp.SUB:
            total -= x.b.value
        if x.op in (BinaryOp.ADD, BinaryOp.SUB) and arithmetic.fits(abs(total), x.dtype):
            return _plus(x.a, total)
    if offset == 0:
        return x
    if offset > 0 and not arithmetic.fits(offset, x.dtype):
        return Binary(BinaryOp.SUB, x, IntImm(-offset, x.dtype))  # x - INT_MIN: 2^n is no literal
    if offset > 0:
        return Binary(BinaryOp.ADD, x, IntImm(offset, x.dtype))
    if arithmetic.fits(-offset, x.dtype):
        return Binary(BinaryOp.SUB, x, IntImm(-offset, x.dtype))
    return Binary(BinaryOp.ADD, x, IntImm(offset, x.dtype))  # x + INT_MIN: it has no negative


def mul(a: Operand, b: Operand) -> Expr:
    """Return the product of two values."""
    x, y = constant_right(*operands(BinaryOp.MUL, a, b))
    folded = fold(BinaryOp.MUL, x, y)
    if folded is not None:
        return folded
    if isinstance(y, IntImm):
        if y.value in (0, 1):
            return x if y.value == 1 else y
        if isinstance(x, Binary) and x.op is BinaryOp.MUL and isinstance(x.b, IntImm):
            factor = x.b.value * y.value
            if arithmetic.fits(factor, x.dtype):
                return mul(x.a, IntImm(factor, x.dtype))
    return Binary(BinaryOp.MUL, x, y)


def neg(a: Operand) -> Expr:
    """Return -a."""
    x = literal(a, dtype_for(a, a)) if isinstance(a, int | float) else a
    if isinstance(x, IntImm) and arithmetic.fits(-x.value, x.dtype):
        return IntImm(-x.value, x.dtype)
    if isinstance(x, FloatImm):
        return FloatImm(-x.value, x.dtype)
    if isinstance(x, Unary) and x.op is UnaryOp.NEG:
        return x.a
    return Unary(UnaryOp.NEG, x)


# --- divisions ----------------------------------------------------------------------------------


def div(a: Operand, b: Operand) -> Expr:
    """Return the quotient of two floats."""
    x, y = operands(BinaryOp.DIV, a, b)
    return fold(BinaryOp.DIV, x, y) or Binary(BinaryOp.DIV, x, y)


def floordiv(a: Operand, b: Operand) -> Expr:
    """Return the quotient rounded to minus infinity."""
    x, y = operands(BinaryOp.FLOORDIV, a, b)
    folded = fold(BinaryOp.FLOORDIV, x, y)
    if folded is not None:
        return folded
    if isinstance(y, IntImm) and y.value > 0:
        if y.value == 1:
            return x
        if isinstance(x, Binary) and x.op is BinaryOp.FLOORDIV and isinstance(x.b, IntImm):
            divisor = x.b.value * y.value
            if x.b.value > 0 and arithmetic.fits(divisor, x.dtype):
                return floordiv(x.a, IntImm(divisor, x.dtype))
    return Binary(BinaryOp.FLOORDIV, x, y)


def floormod(a: Operand, b: Operand) -> Expr:
    """Return the remainder of floordiv: it has the sign of b."""
    x, y = operands(BinaryOp.FLOORMOD, a, b)
    folded = fold(BinaryOp.FLOORMOD, x, y)
    if folded is not None:
        return folded
    if isinstance(y, IntImm) and y.value == 1:
        return const(0, x.dtype)
    return Binary(BinaryOp.FLOORMOD, x, y)


def truncdiv(a: Operand, b: Operand) -> Expr:
    """Return the quotient rounded to zero, as C does."""
    x, y = operands(BinaryOp.TRUNCDIV, a, b)
    unchanged = x if int_value(y) == 1 else None
    return fold(BinaryOp.TRUNCDIV, x, y) or unchanged or Binary(BinaryOp.TRUNCDIV, x, y)


def ceildiv(a: Operand, b: int) -> Expr:
    """Return the quotient by a positive literal, rounded to plus infinity."""
    return floordiv(add(a, b - 1), b)


# --- minimum, maximum, shifts, bits -------------------------------------------------------------


def minimum(a: Operand, b: Operand) -> Expr:
    """Return the lower of two values; for floats the C expression a < b ? a : b."""
    return _extremum(BinaryOp.MIN, a, b)


def maximum(a: Operand, b: Operand) -> Expr:
    """Return the higher of two values; for floats the C expression a > b ? a : b."""
    return _extremum(BinaryOp.MAX, a, b)


def _extremum(op: BinaryOp, a: Operand, b: Operand) -> Expr:
    x, y = constant_right(*operands(op, a, b))
    folded = fold(op, x, y)
    if folded is not None:
        return folded
    if x.dtype.is_int and x == y:
        return x
    if isinstance(x, Binary) and x.op is op and isinstance(x.b, IntImm) and isinstance(y, IntImm):
        return _extremum(op, x.a, _extremum(op, x.b, y))
    return Binary(op, x, y)


def shift_left(a: Operand, b: Operand) -> Expr:
    """Return the product a * 2^b; overflow is an error."""
    return _shift(BinaryOp.SHIFT_LEFT, a, b)


def shift_right(a: Operand, b: Operand) -> Expr:
    """Return the quotient a / 2^b rounded to minus infinity."""
    return _shift(BinaryOp.SHIFT_RIGHT, a, b)


def _shift(op: BinaryOp, a: Operand, b: Operand) -> Expr:
    x, y = operands(op, a, b)
    return fold(op, x, y) or (x if int_value(y) == 0 else Binary(op, x, y))


def bit_and(a: Operand, b: Operand) -> Expr:
    """Return the bitwise a & b of the two's complement representation."""
    return _bits(BinaryOp.BIT_AND, a, b)


def bit_or(a: Operand, b: Operand) -> Expr:
    """Return the bitwise a | b of the two's complement representation."""
    return _bits(BinaryOp.BIT_OR, a, b)


def bit_xor(a: Operand, b: Operand) -> Expr:
    """Return the bitwise a ^ b of the two's complement representation."""
    return _bits(BinaryOp.BIT_XOR, a, b)


def _bits(op: BinaryOp, a: Operand, b: Operand) -> Expr:
    x, y = constant_right(*operands(op, a, b))
    return fold(op, x, y) or Binary(op, x, y)


# --- conditions ---------------------------------------------------------------------------------

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


lt = partial(compare, BinaryOp.LT)
"""The condition a < b."""
le = partial(compare, BinaryOp.LE)
"""The condition a <= b."""
gt = partial(compare, BinaryOp.GT)
"""The condition a > b."""
ge = partial(compare, BinaryOp.GE)
"""The condition a >= b."""
eq = partial(compare, BinaryOp.EQ)
"""The condition a == b."""
ne = partial(compare, BinaryOp.NE)
"""The condition a != b."""


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
            f"the branches of a select have the types {then.dtype.value}"
            f" and {otherwise.dtype.value}",
            fix="cast one of the branches",
        )
    if isinstance(condition, IntImm):
        return then if condition.value else otherwise
    return then if then == otherwise else Select(condition, then, otherwise)


def _require_bool(what: str, condition: Expr) -> None:
    if condition.dtype is not DType.BOOL:
        raise TirError(
            f"'{what}' needs a bool, not {condition.dtype.value}", fix="compare the value"
        )


# --- conversions and calls ----------------------------------------------------------------------


def cast(dtype: DType, value: Operand) -> Expr:
    """Return `value` converted to `dtype`; no node if it has that type."""
    if isinstance(value, int | float):
        value = literal(value, dtype_for(value, value))
    if value.dtype is dtype:
        return value
    known = number(value)
    if known is not None:
        try:
            return literal(arithmetic.convert(known, value.dtype, dtype), dtype)
        except UndefinedError:
            return Cast(dtype, value)
    if isinstance(value, Cast) and _widens(value.value.dtype, value.dtype):
        return cast(dtype, value.value)
    return Cast(dtype, value)


def _widens(source: DType, target: DType) -> bool:
    """Return whether an integer type holds every value of another one."""
    if source.is_float or target.is_float:
        return False
    return target.min <= source.min and source.max <= target.max


def call(intrinsic: Intrinsic, *args: Operand) -> Expr:
    """Apply an intrinsic; numbers take the types of its signature."""
    signature = SIGNATURES[intrinsic]
    if len(args) != len(signature.parameters):
        raise TirError(
            f"{intrinsic.value} takes {len(signature.parameters)} arguments, but got {len(args)}"
        )
    exprs = tuple(
        literal(a, dtype) if isinstance(a, int | float) else a
        for a, dtype in zip(args, signature.parameters, strict=True)
    )
    for position, (e, dtype) in enumerate(zip(exprs, signature.parameters, strict=True)):
        if e.dtype is not dtype:
            raise TirError(
                f"argument {position} of {intrinsic.value} is {e.dtype.value}, not {dtype.value}",
                fix="cast the argument",
            )
    numbers = [number(e) for e in exprs]
    if all(n is not None for n in numbers):
        try:
            return literal(signature.meaning(*numbers), signature.result)
        except UndefinedError:
            pass
    return Call(intrinsic, exprs, signature.result)


# --- statements ---------------------------------------------------------------------------------

NOTHING = Seq(())


def seq(*parts: Stmt | Iterable[Stmt] | None) -> Stmt:
    """Put statements in order, flat; return the statement itself if there is only one."""
    flat: list[Stmt] = []
    for part in parts:
        if part is None:
            continue
        if isinstance(part, Seq):
            flat.extend(_flatten(part.statements))
        elif isinstance(part, Iterable):
            flat.extend(_flatten(part))
        else:
            flat.append(part)
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def _flatten(statements: Iterable[Stmt]) -> Iterable[Stmt]:
    for statement in statements:
        if isinstance(statement, Seq):
            yield from _flatten(statement.statements)
        else:
            yield statement


def is_empty(s: Stmt) -> bool:
    """Return whether a statement is an empty sequence."""
    return isinstance(s, Seq) and not s.statements


def fresh(var: Var, name: str | None = None) -> Var:
    """Make a new Var like `var`: copies of a loop must not share the Vars that they define."""
    return Var(name or var.name, var.dtype, var.low, var.high)


def linear_index(buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
    """Return the row-major position of an element: (i * columns + j) * channels + k."""
    position: Expr = IntImm(0)
    for extent, place in zip(buffer.shape, indices, strict=True):
        position = add(mul(position, extent), place)
    return position
