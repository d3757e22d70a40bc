"""Intrinsics against independent definitions, and their interval bounds against their meanings."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from microtir.dtype import DType
from microtir.tir.analysis.interval import Interval
from microtir.tir.arithmetic import UndefinedError
from microtir.tir.intrinsics import SIGNATURES
from microtir.tir.ir import Intrinsic

MIN32, MAX32 = DType.INT32.min, DType.INT32.max
INT32 = st.one_of(
    st.integers(MIN32, MAX32), st.sampled_from([MIN32, MIN32 + 1, -1, 0, 1, MAX32]),
    st.integers(-300, 300),
)  # fmt: skip

INT48 = st.one_of(st.integers(-(1 << 47), (1 << 47) - 1), INT32)


def meaning(intrinsic: Intrinsic, *args: float) -> float:
    """The value of an intrinsic."""
    return SIGNATURES[intrinsic].meaning(*args)


def half_away(value: Fraction) -> int:
    """Nearest integer, ties away from zero."""
    magnitude = math.floor(abs(value) + Fraction(1, 2))
    return magnitude if value >= 0 else -magnitude


def half_up(value: Fraction) -> int:
    """Nearest integer, ties to plus infinity."""
    return math.floor(value + Fraction(1, 2))


@given(INT32, INT32)
def test_high_mul_is_a_rounded_product(a: int, b: int) -> None:
    """SRDHM is a*b/2^31 with ties up; only INT32_MIN squared saturates."""
    expected = MAX32 if a == b == MIN32 else half_up(Fraction(a * b, 1 << 31))
    assert meaning(Intrinsic.SATURATING_ROUNDING_DOUBLING_HIGH_MUL, a, b) == expected


@given(INT32, st.integers(0, 31))
def test_divide_by_pot_rounds_half_away(x: int, exponent: int) -> None:
    """Ties of a division by a power of two go away from zero."""
    expected = half_away(Fraction(x, 1 << exponent))
    assert meaning(Intrinsic.ROUNDING_DIVIDE_BY_POT, x, exponent) == expected


@given(INT32, st.integers(1 << 30, MAX32), st.integers(-31, 30))
def test_multiplication_is_rounded_twice(x: int, multiplier: int, shift: int) -> None:
    """MultiplyByQuantizedMultiplier rounds the product, then the division."""
    shifted = x << max(shift, 0)
    if not MIN32 <= shifted <= MAX32:
        with pytest.raises(UndefinedError, match="does not fit int32"):
            meaning(Intrinsic.MULTIPLY_BY_QUANTIZED_MULTIPLIER, x, multiplier, shift)
        return
    product = half_up(Fraction(shifted * multiplier, 1 << 31))
    expected = half_away(Fraction(product, 1 << max(-shift, 0)))
    actual = meaning(Intrinsic.MULTIPLY_BY_QUANTIZED_MULTIPLIER, x, multiplier, shift)
    assert actual == expected


@given(INT48, st.integers(0, (1 << 15) - 1), st.integers(-31, 7))
def test_multiplication_of_long_sums_is_rounded_once(x: int, multiplier: int, shift: int) -> None:
    """A sum of 64 bits times a multiplier of 15 bits, ties up."""
    expected = half_up(Fraction(x * multiplier, 1 << (15 - shift)))
    if not MIN32 <= expected <= MAX32:
        with pytest.raises(UndefinedError, match="does not fit int32"):
            meaning(Intrinsic.MULTIPLY_BY_REDUCED_MULTIPLIER, x, multiplier, shift)
        return
    assert meaning(Intrinsic.MULTIPLY_BY_REDUCED_MULTIPLIER, x, multiplier, shift) == expected


def test_known_values_of_double_rounding() -> None:
    """Values where single and double rounding differ, computed by hand."""
    # 3 * 2^30 / 2^31 = 1.5 rounds to 2, and 2 / 4 = 0.5 rounds to 1; 1.5 / 4 would round to 0.
    assert meaning(Intrinsic.MULTIPLY_BY_QUANTIZED_MULTIPLIER, 3, 1 << 30, -2) == 1
    assert meaning(Intrinsic.MULTIPLY_BY_QUANTIZED_MULTIPLIER, -3, 1 << 30, -2) == 0
    assert meaning(Intrinsic.SATURATING_ROUNDING_DOUBLING_HIGH_MUL, -1, 1 << 30) == 0
    assert meaning(Intrinsic.ROUNDING_DIVIDE_BY_POT, -5, 1) == -3


@given(INT32, st.integers(0, 31))
def test_shift_left_saturates(x: int, count: int) -> None:
    """A saturating shift is a clamped multiplication."""
    expected = max(MIN32, min(MAX32, x * 2**count))
    assert meaning(Intrinsic.SATURATING_SHIFT_LEFT, x, count) == expected


@given(st.integers(0, DType.UINT32.max))
def test_leading_zeros(x: int) -> None:
    """Leading zeros are those of the 32-digit binary form."""
    text = f"{x:032b}"
    assert meaning(Intrinsic.COUNT_LEADING_ZEROS, x) == len(text) - len(text.lstrip("0"))


_LONGS = st.integers(DType.INT64.min, DType.INT64.max)


@pytest.mark.parametrize(
    ("intrinsic", "function"),
    [
        (Intrinsic.WRAPPING_ADD, np.add),
        (Intrinsic.WRAPPING_SUB, np.subtract),
        (Intrinsic.WRAPPING_MUL, np.multiply),
    ],
)
@given(a=_LONGS, b=_LONGS)
def test_wrapping_is_numpys(intrinsic: Intrinsic, function: np.ufunc, a: int, b: int) -> None:
    """Integers of 64 bits wrap as numpy's arrays do."""
    expected = function(np.array([a], np.int64), np.array([b], np.int64))
    assert meaning(intrinsic, a, b) == expected[0]


@pytest.mark.parametrize(
    ("intrinsic", "args"),
    [
        (Intrinsic.ROUNDING_DIVIDE_BY_POT, (1, 32)),
        (Intrinsic.SATURATING_SHIFT_LEFT, (1, -1)),
        (Intrinsic.MULTIPLY_BY_QUANTIZED_MULTIPLIER, (1, 1, 31)),
        (Intrinsic.MULTIPLY_BY_QUANTIZED_MULTIPLIER, (1, 1, -32)),
        (Intrinsic.MULTIPLY_BY_REDUCED_MULTIPLIER, (1, 1, 8)),
        (Intrinsic.MULTIPLY_BY_REDUCED_MULTIPLIER, (1, 1 << 15, 0)),
    ],
)
def test_counts_out_of_range_are_undefined(intrinsic: Intrinsic, args: tuple[int, ...]) -> None:
    """A shift count outside its range has no meaning."""
    with pytest.raises(UndefinedError, match="is outside"):
        meaning(intrinsic, *args)


_NUMPY = {
    Intrinsic.EXP: np.exp, Intrinsic.LOG: np.log, Intrinsic.SQRT: np.sqrt,
    Intrinsic.TANH: np.tanh, Intrinsic.FLOOR: np.floor, Intrinsic.ABS: np.abs,
    Intrinsic.SIN: np.sin, Intrinsic.COS: np.cos, Intrinsic.CEIL: np.ceil,
    Intrinsic.ROUND_HALF_TO_EVEN: np.rint,
}  # fmt: skip


@pytest.mark.parametrize("intrinsic", _NUMPY)
@given(value=st.floats(width=32))
@settings(max_examples=80)
def test_float_functions_agree_with_numpy(intrinsic: Intrinsic, value: float) -> None:
    """Float functions are numpy's in double, rounded to float32; infinities and NaN included."""
    with np.errstate(all="ignore"):
        expected = np.float32(_NUMPY[intrinsic](np.float64(value)))
    np.testing.assert_array_max_ulp(
        np.float32(meaning(intrinsic, value)), expected, maxulp=1
    ) if math.isfinite(expected) else np.testing.assert_equal(
        np.float32(meaning(intrinsic, value)), expected
    )


@given(value=st.floats(-(2.0**22), 2.0**22, width=32))
@settings(max_examples=200)
def test_small_numbers_are_rounded_to_even(value: float) -> None:
    """Two sums round as numpy does, whatever the fraction."""
    assert meaning(Intrinsic.ROUND_SMALL, value) == np.rint(value)


_OF_TWO: dict[Intrinsic, Any] = {
    Intrinsic.POW: np.power, Intrinsic.ATAN2: np.arctan2, Intrinsic.FMOD: np.fmod,
    Intrinsic.FLOOR_DIVIDE: lambda x, y: np.floor(x / y),
}  # fmt: skip


@pytest.mark.parametrize("intrinsic", _OF_TWO)
@given(x=st.floats(width=32), y=st.floats(width=32))
@settings(max_examples=80)
def test_float_functions_of_two_are_numpys(intrinsic: Intrinsic, x: float, y: float) -> None:
    """Where they have no value in Python they give what C does: an infinity, or NaN."""
    with np.errstate(all="ignore"):
        expected = np.float32(_OF_TWO[intrinsic](np.float64(x), np.float64(y)))
    np.testing.assert_equal(np.float32(meaning(intrinsic, x, y)), expected)


@given(*(st.floats(width=32, allow_nan=False, allow_infinity=False) for _ in "abc"))
@example(1.0 + 2.0**-12, 1.0 + 2.0**-12, 2.0**-60)  # beyond a tie, by what a double has lost
@example(2.0**-75, 2.0**-75 + 2.0**-98, 2.0**-127)  # the same, where the result has fewer bits
@example(-(2.0**-75), 2.0**-75 + 2.0**-98, -(2.0**-127))
@settings(max_examples=300)
def test_a_product_and_its_sum_are_rounded_once(a: float, b: float, c: float) -> None:
    """The exact sum lies within half a step of the result, which is even where it is a tie."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    got = np.float32(meaning(Intrinsic.FUSED_MULTIPLY_ADD, a, b, c))
    if not np.isfinite(got):
        assert abs(exact) >= (2 - Fraction(1, 1 << 24)) * (1 << 127)
        return
    error = abs(Fraction(float(got)) - exact)
    for side in (-np.inf, np.inf):
        with np.errstate(over="ignore"):
            other = np.nextafter(got, np.float32(side))
        if np.isfinite(other):
            distance = abs(Fraction(float(other)) - exact)
            assert error < distance or (error == distance and got.view(np.int32) % 2 == 0)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.5, 1.0), (-0.5, -1.0), (2.5, 3.0), (-2.4, -2.0), (math.inf, math.inf)],
)
def test_round_is_half_away_from_zero(value: float, expected: float) -> None:
    """Round is C's roundf, not Python's."""
    assert meaning(Intrinsic.ROUND, value) == expected
    assert math.copysign(1, meaning(Intrinsic.ROUND, -0.0)) == -1


@st.composite
def intervals(draw: st.DrawFn, numbers: st.SearchStrategy[int]) -> tuple[Interval, int]:
    """An interval with one of its values."""
    low, inside, high = sorted(draw(st.tuples(numbers, numbers, numbers)))
    return Interval(low, high), inside


_ARGUMENTS = {
    Intrinsic.SATURATING_ROUNDING_DOUBLING_HIGH_MUL: (INT32, INT32),
    Intrinsic.ROUNDING_DIVIDE_BY_POT: (INT32, st.integers(0, 31)),
    Intrinsic.MULTIPLY_BY_QUANTIZED_MULTIPLIER: (INT32, INT32, st.integers(-31, 30)),
    Intrinsic.MULTIPLY_BY_REDUCED_MULTIPLIER: (
        INT48,
        st.integers(0, (1 << 15) - 1),
        st.integers(-31, 7),
    ),
    Intrinsic.SATURATING_SHIFT_LEFT: (INT32, st.integers(0, 31)),
    Intrinsic.COUNT_LEADING_ZEROS: (st.integers(0, DType.UINT32.max),),
    Intrinsic.WRAPPING_MUL: (_LONGS, _LONGS),
}


@pytest.mark.parametrize("intrinsic", _ARGUMENTS)
@given(data=st.data())
@settings(max_examples=200)
def test_bounds_hold(intrinsic: Intrinsic, data: st.DataObject) -> None:
    """The value for arguments inside their intervals lies in the interval of the result."""
    drawn = [data.draw(intervals(s)) for s in _ARGUMENTS[intrinsic]]
    bounds = SIGNATURES[intrinsic].bounds
    assert bounds is not None
    try:
        value = meaning(intrinsic, *(inside for _, inside in drawn))
    except UndefinedError:
        return
    assert int(value) in bounds(tuple(span for span, _ in drawn))


def test_every_integer_intrinsic_has_bounds() -> None:
    """The table knows every intrinsic, and bounds for all that make integers of integers."""
    assert set(SIGNATURES) == set(Intrinsic)
    without = {i for i, s in SIGNATURES.items() if s.bounds is None}
    for signature in map(SIGNATURES.__getitem__, without):
        assert any(dtype.is_float for dtype in (*signature.parameters, signature.result))
