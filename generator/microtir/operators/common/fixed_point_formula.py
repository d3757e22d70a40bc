"""Write functions of gemmlowp's fixed point that several formulas share.

`operators.common.fixed_point` says the same of numbers.
"""

from __future__ import annotations

from microtir import te
from microtir.dtype import DType
from microtir.operators.common.fixed_point import constant

_MUL = te.saturating_rounding_doubling_high_mul


def leading_zeros(value: te.Expr) -> te.Expr:
    """Count the zero bits above the highest set bit of a value from 0 on."""
    return te.count_leading_zeros(te.cast(DType.UINT32, value))


def reciprocal(value: te.Expr, headroom: te.Expr) -> te.Expr:
    """Return 1 / (value normalised to [1, 2)) in Q0."""
    bits = te.cast(DType.UINT32, value) << te.cast(DType.UINT32, headroom)
    return one_over_one_plus_x(te.cast(DType.INT32, bits - (1 << 31)))


def one_over_one_plus_x(fraction: te.Expr) -> te.Expr:
    """Return 1 / (1 + x) for x in [-1/2, 1), both in Q0: three Newton-Raphson steps.

    gemmlowp saturates each step's correction to 32 bits.  It never does: with d = (1 + x) / 2 in
    [1/4, 1) an estimate is at most 48/17 and its error |1 - d * estimate| at most 0.42, so that
    their product in Q4, times 4, is below 2^30.
    """
    half = te.bind("half_denominator", (fraction >> 1) + (1 << 30))
    estimate = constant(48 / 17, 2) + _MUL(half, constant(-32 / 17, 2))
    for _ in range(3):
        x = te.bind("estimate", estimate)
        error = (1 << 29) - _MUL(half, x)
        estimate = x + _MUL(x, error) * 4
    # A saturating shift, of a number that is positive: compilers would go on in 64 bits.
    estimate = te.bind("estimate", estimate)
    return te.minimum(estimate, (1 << 30) - 1) * 2 + (estimate >> 30)
