"""Fixed-point arithmetic of quantised kernels, on numpy int64 arrays that hold int32 values.

The definitions are those of gemmlowp's fixed-point library and of TFLite's kernels, which decide
every bit of a quantised result.  A value in format Q(n) is stored * 2^(n - 31): n integer bits.
Functions broadcast; results are int64 arrays within the int32 range.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]

IntsLike: TypeAlias = "Ints | int"

INT16_MAX = (1 << 15) - 1

INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1

UINT32_MAX = (1 << 32) - 1

INVERSE_ROOT_HALF_THREE = (1 << 28) + (1 << 27)
"""3/2 in Q3, of the steps to an inverse square root."""

INVERSE_ROOT_HALF_ROOT_TWO = 1_518_500_250
"""sqrt(2) / 2 in Q0."""


def constant(value: float, integer_bits: int = 0) -> int:
    """Return the real `value` in Q(integer_bits), rounded to nearest and saturated."""
    scaled = value * float(1 << (31 - integer_bits))
    return max(INT32_MIN, min(INT32_MAX, round_half_away(scaled)))


def round_half_away(value: float) -> int:
    """Round to the nearest integer, halves away from zero, as C's `round` does."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def wrap(value: IntsLike, bits: int = 32) -> Ints:
    """Reduce to `bits` bits in two's complement."""
    half = 1 << (bits - 1)
    return (np.asarray(value, np.int64) + half & (1 << bits) - 1) - half


def truncating_shift_right(value: IntsLike, bits: int) -> Ints:
    """Divide by 2^bits, rounding to zero."""
    array = np.asarray(value, np.int64)
    return np.where(array >= 0, array >> bits, -(-array >> bits))


def saturating_rounding_doubling_high_mul(a: IntsLike, b: IntsLike, bits: int = 32) -> Ints:
    """Return the high half of 2ab of `bits`-bit operands, to nearest; -1 * -1 saturates."""
    half = 1 << (bits - 2)
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    nudge = np.where(product >= 0, half, 1 - half)
    high = truncating_shift_right(product + nudge, bits - 1)
    return np.minimum(high, (1 << (bits - 1)) - 1)


def rounding_divide_by_pot(value: IntsLike, exponent: IntsLike, bits: int = 32) -> Ints:
    """Divide by 2^exponent (0 to 31), rounding to nearest, halves away from zero.

    `bits` is the width of the operand.  An exponent of `bits` or more makes the mask of the
    original's 16-bit variant all ones, and the result follows that: it is not always zero.
    """
    array = np.asarray(value, np.int64)
    shift = np.asarray(exponent, np.int64)
    mask = wrap((np.int64(1) << shift) - 1, bits)
    threshold = (mask >> 1) + np.where(array < 0, 1, 0)
    quotient: Ints = (array >> shift) + np.where((array & mask) > threshold, 1, 0)
    return quotient


def saturating_shift_left(value: IntsLike, amount: IntsLike, bits: int = 32) -> Ints:
    """Multiply by 2^amount and clamp to `bits` bits; amount is at most 31."""
    limit = 1 << (bits - 1)
    shifted: Ints = np.asarray(value, np.int64) << np.asarray(amount, np.int64)
    return np.clip(shifted, -limit, limit - 1)


def multiply_by_quantized_multiplier(
    value: IntsLike, multiplier: IntsLike, shift: IntsLike
) -> Ints:
    """Return value * multiplier * 2^(shift - 31), rounded twice, as tflite-micro is built.

    A positive shift is applied first and wraps where the product leaves int32, which is what the
    compiled kernels do although C leaves it undefined.
    """
    exponent = np.asarray(shift, np.int64)
    shifted = wrap(np.asarray(value, np.int64) << np.maximum(exponent, 0))
    high = saturating_rounding_doubling_high_mul(shifted, multiplier)
    return rounding_divide_by_pot(high, np.maximum(-exponent, 0))


def multiply_by_reduced_multiplier(value: IntsLike, multiplier: IntsLike, shift: IntsLike) -> Ints:
    """Return value * multiplier * 2^(shift - 15), rounded once, ties up, as sums of 64 bits are.

    The value has 48 bits, the multiplier 15.  A result that leaves int32 wraps, as it does in the
    compiled kernels.
    """
    right = 15 - np.asarray(shift, np.int64)
    product = np.asarray(value, np.int64) * np.asarray(multiplier, np.int64)
    return wrap((product + (np.int64(1) << (right - 1))) >> right)


def rescale(value: IntsLike, from_bits: int, to_bits: int) -> Ints:
    """Convert Q(from_bits) to Q(to_bits): saturates to the left, rounds to the right."""
    exponent = from_bits - to_bits
    if exponent >= 0:
        return saturating_shift_left(value, exponent)
    return rounding_divide_by_pot(value, -exponent)


def count_leading_zeros(value: IntsLike) -> Ints:
    """Return the leading zero bits of a uint32; 32 for zero."""
    _, bit_length = np.frexp(np.asarray(value, np.int64).astype(np.float64))
    return np.asarray(32 - bit_length, np.int64)


def _exp_near_zero(a: Ints) -> Ints:
    """Return the exponential of Q0 in [-1/4, 0): Taylor polynomial of degree 4 around -1/8."""
    mul = saturating_rounding_doubling_high_mul
    x = a + (1 << 28)
    x2 = mul(x, x)
    x3 = mul(x2, x)
    x4 = mul(x2, x2)
    cubic = mul(rounding_divide_by_pot(x4, 2) + x3, constant(1 / 3)) + x2
    base = constant(math.exp(-1 / 8))
    return base + mul(base, x + rounding_divide_by_pot(cubic, 1))


def exp_on_negative_values(a: IntsLike, integer_bits: int) -> Ints:
    """Return the exponential of a <= 0 in Q(integer_bits), integer_bits <= 5; result in Q0."""
    array = np.asarray(a, np.int64)
    fraction_bits = 31 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    fraction = (array & (quarter - 1)) - quarter
    result = _exp_near_zero(rescale(fraction, integer_bits, 0))
    remainder = fraction - array
    for exponent in range(-2, integer_bits):
        factor = constant(math.exp(-(2.0**exponent)))
        bit_is_set = (remainder & (1 << (fraction_bits + exponent))) != 0
        product = saturating_rounding_doubling_high_mul(result, factor)
        result = np.where(bit_is_set, product, result)
    return np.where(array == 0, INT32_MAX, result)


def _newton_reciprocal_of_half_sum(a: Ints) -> Ints:
    """Return 2 / (1 + a) in Q2 for a in [0, 1) in Q0: three Newton-Raphson steps."""
    mul = saturating_rounding_doubling_high_mul
    half_denominator = (a + INT32_MAX + 1) >> 1
    x = constant(48 / 17, 2) + mul(half_denominator, constant(-32 / 17, 2))
    for _ in range(3):
        error = (1 << 29) - mul(half_denominator, x)
        x = x + rescale(mul(x, error), 4, 2)
    return x


def one_over_one_plus_x(a: IntsLike) -> Ints:
    """Return 1 / (1 + a) for a in [0, 1), both in Q0."""
    return rescale(_newton_reciprocal_of_half_sum(np.asarray(a, np.int64)), 1, 0)


def one_minus_x_over_one_plus_x(a: IntsLike) -> Ints:
    """Return (1 - a) / (1 + a) for a in [0, 1), both in Q0."""
    x = _newton_reciprocal_of_half_sum(np.asarray(a, np.int64))
    return rescale(x - (1 << 29), 2, 0)


def logistic(a: IntsLike, integer_bits: int) -> Ints:
    """Return 1 / (1 + exp(-a)) for a in Q(integer_bits); result in Q0."""
    array = np.asarray(a, np.int64)
    positive = one_over_one_plus_x(exp_on_negative_values(-np.abs(array), integer_bits))
    result = np.where(array > 0, positive, INT32_MAX - positive)
    return np.where(array == 0, 1 << 30, result)


def tanh(a: IntsLike, integer_bits: int) -> Ints:
    """Return the hyperbolic tangent of a in Q(integer_bits), integer_bits <= 4; result in Q0."""
    array = np.asarray(a, np.int64)
    exp = exp_on_negative_values(-np.abs(array), integer_bits + 1)
    magnitude = one_minus_x_over_one_plus_x(exp)
    return np.where(array == 0, 0, np.where(array < 0, -magnitude, magnitude))


def reciprocal(value: IntsLike, integer_bits: int) -> tuple[Ints, Ints]:
    """Return 1 / value for a positive value in Q(integer_bits).

    Returns the reciprocal of value * 2^-n in Q0, and n, the number of bits of value above 1.
    """
    array = np.asarray(value, np.int64)
    headroom = count_leading_zeros(array)
    normalised = (array << headroom) - (1 << 31)
    return one_over_one_plus_x(normalised), integer_bits - headroom


def inverse_square_root(value: IntsLike) -> tuple[Ints, Ints]:
    """Return 1 / sqrt(value) of an integer from 0 on: a Q0 multiplier, and a shift to the left.

    Of 0 it is that of 1.  The value is normalised to [1/4, 1) in Q3 by pairs of bits; five steps of
    Newton and Raphson begin at 1.
    """
    mul = saturating_rounding_doubling_high_mul
    array = np.maximum(np.asarray(value, np.int64), 2)
    large = array >= 1 << 29
    array = np.where(large, array >> 2, array)
    pairs = (count_leading_zeros(array) - 1) // 2 - 1
    right = 11 + large - pairs
    half_input = rounding_divide_by_pot((array << (2 * pairs)) >> 1, 1)
    x = np.full_like(array, 1 << 28)
    for _ in range(5):
        cube = rescale(mul(mul(x, x), x), 9, 3)
        x = rescale(mul(INVERSE_ROOT_HALF_THREE, x) - mul(half_input, cube), 6, 3)
    x = mul(x, INVERSE_ROOT_HALF_ROOT_TWO) << np.maximum(-right, 0)
    is_one = np.asarray(value) <= 1
    return np.where(is_one, INT32_MAX, x), np.where(is_one, 0, -np.maximum(right, 0))


def log_of_value_above_one(value: IntsLike, integer_bits: int, result_bits: int) -> Ints:
    """Return the natural logarithm of a value >= 1 in Q(integer_bits); result in Q(result_bits).

    Writes the value as r * 2^e with r near the fourth root of 1/2, taking the better of two
    normalisations, and adds e * log(2) to a rational approximation of log(r).
    """
    mul = saturating_rounding_doubling_high_mul
    z = np.asarray(value, np.int64)
    accumulator_bits = result_bits + 1
    quarter = rescale(constant(0.25), 0, accumulator_bits)
    root_half = constant(math.sqrt(0.5))

    headroom = count_leading_zeros(z)
    r_a = saturating_shift_left(mul(saturating_shift_left(z, headroom - 1), root_half), 1)
    power_a = saturating_shift_left(integer_bits - headroom, 31 - accumulator_bits) + quarter
    headroom = count_leading_zeros(mul(z, root_half)) - 1
    r_b = saturating_shift_left(z, headroom)
    power_b = saturating_shift_left(integer_bits - headroom, 31 - accumulator_bits) - quarter

    log_r = _log_of_normalised(np.minimum(r_a, r_b), accumulator_bits)
    power = np.clip(np.maximum(power_a, power_b), INT32_MIN, INT32_MAX)
    return rescale(mul(power, constant(math.log(2.0))) + log_r, accumulator_bits, result_bits)


def _log_of_normalised(r: Ints, accumulator_bits: int) -> Ints:
    """Return log(r * 2^(1/4)) for r in Q0 near the fourth root of 1/2, in Q(accumulator_bits)."""
    mul = saturating_rounding_doubling_high_mul
    root = math.sqrt(math.sqrt(2.0))
    centre = constant(math.sqrt(math.sqrt(0.5)))
    p = (r + centre + 1) >> 1
    q = 2 * (r - centre)
    square = mul(q, q)
    numerator = mul(q, r) + mul(mul(q, square), constant(11 / 240 * root))
    inner = constant(2 / root - root) + q + mul(constant(root / 20), square)
    denominator_minus_one = mul(p, inner) + mul(constant(root / 4), q)
    scaled = rescale(numerator, 0, accumulator_bits)
    return mul(scaled, one_over_one_plus_x(denominator_minus_one))
