"""Compute inverse square roots of integers as tensor expressions."""

from __future__ import annotations

from microtir import te
from microtir.dtype import DType
from microtir.operators.common import fixed_point

_MUL = te.saturating_rounding_doubling_high_mul
_SHIFT = te.saturating_shift_left


def inverse_square_root(value: te.Expr) -> tuple[te.Expr, te.Expr]:
    """Return 1 / sqrt(value) of an INT32 from 0 on: a Q0 multiplier, and a shift to the left.

    Of 0 it is that of 1.  `operators.common.fixed_point` says the same of numbers.
    """
    large = te.bind("large", te.maximum(value, 2))
    is_large = te.bind("quarters", te.select(large >= 1 << 29, 1, 0))
    x = te.bind("quartered", large >> (is_large * 2))
    zeros = te.count_leading_zeros(te.cast(DType.UINT32, x))
    pairs = te.bind("pairs", ((zeros - 1) >> 1) - 1)
    right = te.bind("right", 11 + is_large - pairs)
    half_input = te.bind("half_input", te.rounding_divide_by_pot((x << (pairs * 2)) >> 1, 1))
    root = te.as_expr(1 << 28)
    for _ in range(5):
        x = te.bind("root", root)
        cube = _SHIFT(_MUL(_MUL(x, x), x), 6)
        root = _SHIFT(_MUL(fixed_point.INVERSE_ROOT_HALF_THREE, x) - _MUL(half_input, cube), 3)
    scaled = _MUL(root, fixed_point.INVERSE_ROOT_HALF_ROOT_TWO) << te.maximum(-right, 0)
    # 2 stands for 0 and 1: it has their shift, and saturates to their multiplier.
    return _SHIFT(scaled, te.select(value <= 1, 31, 0)), -te.maximum(right, 0)
