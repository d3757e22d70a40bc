from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtir.operators.common import fixed_point as fp

INT32 = st.integers(fp.INT32_MIN, fp.INT32_MAX)


def _away_from_zero(value: Fraction) -> int:
    magnitude = math.floor(abs(value) + Fraction(1, 2))
    return magnitude if value >= 0 else -magnitude


@given(INT32, INT32)
def test_high_mul_is_the_rounded_product(a: int, b: int) -> None:
    """The high product is a * b / 2^31 to nearest, ties towards plus infinity, saturated."""
    expected = math.floor(Fraction(a * b, 1 << 31) + Fraction(1, 2))
    result = fp.saturating_rounding_doubling_high_mul(a, b)
    assert int(result) == min(expected, fp.INT32_MAX)


def test_high_mul_saturates_the_single_overflow() -> None:
    """-1 * -1 gives the largest value, in 32 and in 16 bits."""
    low = fp.INT32_MIN
    assert int(fp.saturating_rounding_doubling_high_mul(low, low)) == fp.INT32_MAX
    short = fp.saturating_rounding_doubling_high_mul(-(1 << 15), -(1 << 15), bits=16)
    assert int(short) == fp.INT16_MAX


@given(INT32, st.integers(0, 31))
def test_rounding_divide_rounds_half_away_from_zero(value: int, exponent: int) -> None:
    """Division by a power of two is exact rational division, rounded half away from zero."""
    expected = _away_from_zero(Fraction(value, 1 << exponent))
    assert int(fp.rounding_divide_by_pot(value, exponent)) == expected


@given(INT32, st.integers(0, 31))
def test_shift_left_saturates(value: int, amount: int) -> None:
    """A left shift is the clamped product."""
    expected = max(fp.INT32_MIN, min(fp.INT32_MAX, value << amount))
    assert int(fp.saturating_shift_left(value, amount)) == expected


@given(st.integers(-(1 << 20), 1 << 20), st.integers(1 << 30, fp.INT32_MAX), st.integers(-31, 10))
def test_requantisation_is_close_to_the_real_product(value: int, factor: int, shift: int) -> None:
    """Two roundings leave at most one unit and a half of error."""
    real = Fraction(value * factor) * Fraction(2) ** (shift - 31)
    result = int(fp.multiply_by_quantized_multiplier(value, factor, shift))
    assert abs(result - real) <= Fraction(3, 2)


def test_requantisation_rounds_twice() -> None:
    """A quarter of 5 is 1.25, but 2.5 becomes 3 first, and half of 3 becomes 2."""
    values = np.array([3, -3, 5, -5, 6])
    result = fp.multiply_by_quantized_multiplier(values, 1 << 30, -1)
    # After the first step: 2, -1, 3, -2, 3 (ties go up); after the second: halves away from zero.
    assert result.tolist() == [1, -1, 2, -1, 2]


def test_requantisation_wraps_like_the_compiled_kernels() -> None:
    """A left shift beyond int32 wraps before the multiplication."""
    assert int(fp.multiply_by_quantized_multiplier(1 << 30, 1 << 30, 1)) == -(1 << 30)


@given(st.integers(0, (1 << 32) - 1))
def test_leading_zeros(value: int) -> None:
    """Leading zeros and bit length add up to 32."""
    assert int(fp.count_leading_zeros(value)) + value.bit_length() == 32


@pytest.mark.parametrize("integer_bits", [4, 5])
def test_exponential_of_negative_values(integer_bits: int) -> None:
    """The exponential is right to 2^-22 over its whole range, and 1 at zero."""
    x = np.linspace(fp.INT32_MIN + 1, 0, 5001).astype(np.int64)
    real = np.exp(x / 2.0 ** (31 - integer_bits))
    assert np.abs(fp.exp_on_negative_values(x, integer_bits) / 2.0**31 - real).max() < 2.0**-22
    assert int(fp.exp_on_negative_values(0, integer_bits)) == fp.INT32_MAX


def test_sigmoids() -> None:
    """Logistic and tanh are right to 2^-22, with their exact values at zero."""
    x = np.linspace(-(1 << 31) + 1, (1 << 31) - 1, 5001).astype(np.int64)
    real = x / 2.0**27
    logistic = fp.logistic(x, 4) / 2.0**31
    assert np.abs(logistic - 1 / (1 + np.exp(-real))).max() < 2.0**-22
    assert np.abs(fp.tanh(x, 4) / 2.0**31 - np.tanh(real)).max() < 2.0**-22
    assert int(fp.logistic(0, 4)) == 1 << 30
    assert int(fp.tanh(0, 4)) == 0


@given(st.integers(1 << 19, fp.INT32_MAX))
def test_reciprocal(value: int) -> None:
    """1 / x in Q12 for x >= 1."""
    inverse, bits = fp.reciprocal(value, 12)
    real = value / 2.0**19
    assert float(inverse) / 2.0**31 * 2.0 ** -float(bits) == pytest.approx(1 / real, abs=2.0**-25)


@given(st.integers(1 << 19, fp.INT32_MAX))
def test_logarithm(value: int) -> None:
    """log(x) in Q5 for x >= 1 in Q12."""
    result = float(fp.log_of_value_above_one(value, 12, 5)) / 2.0**26
    assert result == pytest.approx(math.log(value / 2.0**19), abs=2.0**-20)


def test_constants_saturate() -> None:
    """A constant of 1 in Q0 is the largest value; halves round away from zero."""
    assert fp.constant(1.0) == fp.INT32_MAX
    assert fp.constant(-1.0) == fp.INT32_MIN
    assert fp.constant(0.5, 1) == 1 << 29
    assert [fp.round_half_away(x) for x in (0.5, -0.5, 1.4, -1.6)] == [1, -1, 1, -2]
