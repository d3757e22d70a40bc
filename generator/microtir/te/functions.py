"""Functions on handles: conversions, choices, and the scalar functions of TIR."""

from __future__ import annotations

from microtir.dtype import DType
from microtir.errors import TirError
from microtir.support.arguments import checked_arguments
from microtir.te.expr import Expr, ExprLike, as_expr, binary, describe, merged, same_type
from microtir.tir import build
from microtir.tir.intrinsics import SIGNATURES
from microtir.tir.ir import Intrinsic


@checked_arguments
def const(value: float, dtype: DType) -> Expr:
    """Make a literal of the given type; TirError if `value` is no value of it."""
    return as_expr(value, dtype)


@checked_arguments
def cast(dtype: DType, value: ExprLike) -> Expr:
    """Convert to `dtype`; a float is truncated, and a value outside the type is an error."""
    handle = as_expr(value)
    return Expr(build.cast(dtype, handle.node), handle.needs)


@checked_arguments
def select(condition: ExprLike, then: ExprLike, otherwise: ExprLike) -> Expr:
    """Return `then` where `condition` (BOOL) holds, else `otherwise`; the other is not evaluated.

    Raises:
        TirError: the condition is no BOOL, or the arms have different types.
    """
    test = as_expr(condition)
    if test.dtype is not DType.BOOL:
        raise TirError(
            f"the condition {describe(test)} is {test.dtype.value}, not bool",
            where="te.select",
            fix="compare it with a number",
        )
    a, b = same_type("select", then, otherwise)
    needs = merged(test.needs, a.needs, b.needs)
    return Expr(build.select(test.node, a.node, b.node), needs)


def minimum(a: ExprLike, b: ExprLike) -> Expr:
    """Return the smaller of two values of one type."""
    return binary("minimum", build.minimum, a, b)


def maximum(a: ExprLike, b: ExprLike) -> Expr:
    """Return the larger of two values of one type."""
    return binary("maximum", build.maximum, a, b)


@checked_arguments
def clamp(value: ExprLike, low: ExprLike, high: ExprLike) -> Expr:
    """Return `value` limited to [low, high]."""
    return minimum(maximum(value, low), high)


def truncdiv(a: ExprLike, b: ExprLike) -> Expr:
    """Divide integers and round towards zero, as C does."""
    return binary("truncdiv", build.truncdiv, a, b)


@checked_arguments
def call(intrinsic: Intrinsic, *args: ExprLike) -> Expr:
    """Apply an intrinsic; numbers take the types of its signature.

    Raises:
        TirError: wrong number or type of arguments.
    """
    parameters = SIGNATURES[intrinsic].parameters
    if len(args) != len(parameters):
        raise TirError(
            f"{intrinsic.value} takes {len(parameters)} arguments, but got {len(args)}",
            where="te.call",
        )
    handles = [as_expr(arg, dtype) for arg, dtype in zip(args, parameters, strict=True)]
    for handle, dtype in zip(handles, parameters, strict=True):
        if handle.dtype is not dtype:
            raise TirError(
                f"the argument {describe(handle)} is {handle.dtype.value}, but "
                f"{intrinsic.value} needs {dtype.value}",
                where="te.call",
                fix=f"convert it with te.cast(DType.{dtype.name}, value)",
            )
    node = build.call(intrinsic, *(handle.node for handle in handles))
    return Expr(node, merged(*(handle.needs for handle in handles)))


# --- fixed point, on INT32 or, as said, INT64: gemmlowp's and TFLite's definitions --------------


@checked_arguments
def multiply_by_quantized_multiplier(x: ExprLike, multiplier: ExprLike, shift: ExprLike) -> Expr:
    """Return x * multiplier * 2^(shift - 31), rounded twice as TFLite does."""
    return call(Intrinsic.MULTIPLY_BY_QUANTIZED_MULTIPLIER, x, multiplier, shift)


@checked_arguments
def multiply_by_reduced_multiplier(x: ExprLike, multiplier: ExprLike, shift: ExprLike) -> Expr:
    """Return x * multiplier * 2^(shift - 15) of an INT64, rounded once, as TFLite does."""
    return call(Intrinsic.MULTIPLY_BY_REDUCED_MULTIPLIER, x, multiplier, shift)


def saturating_rounding_doubling_high_mul(a: ExprLike, b: ExprLike) -> Expr:
    """Return round(a * b / 2^31) as gemmlowp does."""
    return call(Intrinsic.SATURATING_ROUNDING_DOUBLING_HIGH_MUL, a, b)


@checked_arguments
def rounding_divide_by_pot(x: ExprLike, exponent: ExprLike) -> Expr:
    """Return x / 2^exponent, rounded to nearest, ties away from zero, as gemmlowp does."""
    return call(Intrinsic.ROUNDING_DIVIDE_BY_POT, x, exponent)


@checked_arguments
def saturating_shift_left(x: ExprLike, count: ExprLike) -> Expr:
    """Return x * 2^count, saturated to INT32."""
    return call(Intrinsic.SATURATING_SHIFT_LEFT, x, count)


def count_leading_zeros(x: ExprLike) -> Expr:
    """Count the zero bits above the highest set bit of a UINT32, as INT32; 32 for zero."""
    return call(Intrinsic.COUNT_LEADING_ZEROS, x)


# --- integers that wrap, on INT64 ---------------------------------------------------------------


def wrapping_add(a: ExprLike, b: ExprLike) -> Expr:
    """Return a + b modulo 2^64."""
    return call(Intrinsic.WRAPPING_ADD, a, b)


def wrapping_sub(a: ExprLike, b: ExprLike) -> Expr:
    """Return a - b modulo 2^64."""
    return call(Intrinsic.WRAPPING_SUB, a, b)


def wrapping_mul(a: ExprLike, b: ExprLike) -> Expr:
    """Return a * b modulo 2^64."""
    return call(Intrinsic.WRAPPING_MUL, a, b)


# --- floating point, on FLOAT32 -----------------------------------------------------------------


def exp(x: ExprLike) -> Expr:
    """Return e to the power of x."""
    return call(Intrinsic.EXP, x)


def log(x: ExprLike) -> Expr:
    """Return the natural logarithm; minus infinity for 0, NaN below."""
    return call(Intrinsic.LOG, x)


def sqrt(x: ExprLike) -> Expr:
    """Return the square root; NaN below 0."""
    return call(Intrinsic.SQRT, x)


def tanh(x: ExprLike) -> Expr:
    """Return the hyperbolic tangent."""
    return call(Intrinsic.TANH, x)


def sin(x: ExprLike) -> Expr:
    """Return the sine."""
    return call(Intrinsic.SIN, x)


def cos(x: ExprLike) -> Expr:
    """Return the cosine."""
    return call(Intrinsic.COS, x)


def floor(x: ExprLike) -> Expr:
    """Return the largest whole number that is not above x."""
    return call(Intrinsic.FLOOR, x)


def ceil(x: ExprLike) -> Expr:
    """Return the smallest whole number that is not below x."""
    return call(Intrinsic.CEIL, x)


def round(x: ExprLike) -> Expr:  # noqa: A001  # the name that C and numpy give it
    """Return the nearest whole number, ties away from zero, as C's roundf."""
    return call(Intrinsic.ROUND, x)


def round_half_to_even(x: ExprLike) -> Expr:
    """Return the nearest whole number, of two the even one, as Python's round."""
    return call(Intrinsic.ROUND_HALF_TO_EVEN, x)


def round_small(x: ExprLike) -> Expr:
    """Return `round_half_to_even` of a number whose magnitude is below 2^22, in two sums."""
    return call(Intrinsic.ROUND_SMALL, x)


def float_of_bits(x: ExprLike) -> Expr:
    """Return the FLOAT32 whose bits an INT32 has."""
    return call(Intrinsic.FLOAT_OF_BITS, x)


def bits_of_float(x: ExprLike) -> Expr:
    """Return the INT32 that has the bits of a FLOAT32."""
    return call(Intrinsic.BITS_OF_FLOAT, x)


@checked_arguments
def pow(x: ExprLike, y: ExprLike) -> Expr:  # noqa: A001  # the name that C gives it
    """Return x to the power of y, as C's powf."""
    return call(Intrinsic.POW, x, y)


@checked_arguments
def atan2(y: ExprLike, x: ExprLike) -> Expr:
    """Return the angle of the point (x, y), as C's atan2f."""
    return call(Intrinsic.ATAN2, y, x)


@checked_arguments
def fmod(x: ExprLike, y: ExprLike) -> Expr:
    """Return the remainder of x / y with the sign of x, as C's fmodf."""
    return call(Intrinsic.FMOD, x, y)


@checked_arguments
def floor_divide(x: ExprLike, y: ExprLike) -> Expr:
    """Return the quotient of two FLOAT32, computed in double, rounded to minus infinity."""
    return call(Intrinsic.FLOOR_DIVIDE, x, y)


def fused_multiply_add(a: ExprLike, b: ExprLike, c: ExprLike) -> Expr:
    """Return a * b + c, rounded once, as C's fmaf: slow where a CPU has no instruction for it."""
    return call(Intrinsic.FUSED_MULTIPLY_ADD, a, b, c)


def no_fp_contract(x: ExprLike) -> Expr:
    """Return the value of x, which is never contracted with a sum to a fused multiply-add."""
    return call(Intrinsic.NO_FP_CONTRACT, x)


def compiler_barrier(x: ExprLike) -> Expr:
    """Return the value of x, an INT32, which compilers read after what comes before it."""
    return call(Intrinsic.COMPILER_BARRIER, x)


def abs(x: ExprLike) -> Expr:  # noqa: A001  # the name that C and numpy give it
    """Return the magnitude of a FLOAT32 or of a signed integer."""
    handle = as_expr(x)
    if handle.dtype.is_int and handle.dtype.is_signed:
        return maximum(handle, -handle)
    return call(Intrinsic.ABS, handle)
