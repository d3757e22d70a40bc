"""Signatures, exact meanings and interval bounds of the scalar functions of TIR.

The fixed-point functions are those of gemmlowp and of TFLite's reference kernels (with double
rounding, i.e. without TFLITE_SINGLE_ROUNDING), on exact integers.  The float functions are
computed in double and rounded once to float32.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from microtir.dtype import DType
from microtir.tir import arithmetic, float_functions
from microtir.tir.analysis.interval import Interval, corners
from microtir.tir.ir import Intrinsic

REDUCED_LIMIT = (1 << 15) - 1
"""The largest multiplier of `multiply_by_reduced_multiplier`."""

IntervalFunction: TypeAlias = Callable[[tuple[Interval, ...]], Interval]


@dataclass(frozen=True, slots=True)
class IntrinsicSignature:
    """Types of an intrinsic.

    `meaning` maps argument values to the result and raises UndefinedError where there is none;
    `bounds` maps argument intervals to an interval of the result, None for results or arguments
    that are floats.
    """

    parameters: tuple[DType, ...]
    result: DType
    meaning: Callable[..., arithmetic.Number]
    bounds: IntervalFunction | None = None


# --- fixed point --------------------------------------------------------------------------------


def saturating_rounding_doubling_high_mul(a: int, b: int) -> int:
    """Return round(a * b / 2^31), ties up, saturating for INT32_MIN squared, as gemmlowp does."""
    if a == b == DType.INT32.min:
        return DType.INT32.max
    product = a * b
    nudge = (1 << 30) if product >= 0 else 1 - (1 << 30)
    return arithmetic.truncated_division(product + nudge, 1 << 31)


def rounding_divide_by_pot(x: int, exponent: int) -> int:
    """Return x / 2^exponent, rounded as gemmlowp does: ties away from zero; exponent 0 to 31."""
    _check_count("exponent", exponent, 0, 31)
    mask = (1 << exponent) - 1
    threshold = (mask >> 1) + (1 if x < 0 else 0)
    return (x >> exponent) + (1 if (x & mask) > threshold else 0)


def multiply_by_quantized_multiplier(x: int, multiplier: int, shift: int) -> int:
    """Return x * multiplier * 2^(shift - 31), rounded twice as TFLite does; shift -31 to 30.

    Raises:
        UndefinedError: x * 2^shift does not fit int32; the reference kernel leaves that undefined.
    """
    _check_count("shift", shift, -31, 30)
    shifted = arithmetic.check(x << max(shift, 0), DType.INT32)
    high = saturating_rounding_doubling_high_mul(shifted, multiplier)
    return rounding_divide_by_pot(high, max(-shift, 0))


def multiply_by_reduced_multiplier(x: int, multiplier: int, shift: int) -> int:
    """Return x * multiplier * 2^(shift - 15), ties up, as TFLite rescales sums of 64 bits.

    The multiplier has 15 bits, the shift is -31 to 7.

    Raises:
        UndefinedError: the product does not fit int64, or the result not int32.
    """
    _check_count("multiplier", multiplier, 0, REDUCED_LIMIT)
    _check_count("shift", shift, _REDUCED_SHIFT.low, _REDUCED_SHIFT.high)
    right = 15 - shift
    product = arithmetic.check(x * multiplier + (1 << (right - 1)), DType.INT64)
    return arithmetic.check(product >> right, DType.INT32)


def saturating_shift_left(x: int, count: int) -> int:
    """Return the product x * 2^count, clamped to int32; count in [0, 31]."""
    _check_count("count", count, 0, 31)
    return max(DType.INT32.min, min(DType.INT32.max, x << count))


def count_leading_zeros(x: int) -> int:
    """Count the zero bits above the highest set bit of a uint32; 32 for zero."""
    return 32 - x.bit_length()


def _wrapping(function: Callable[[int, int], int]) -> Callable[[int, int], int]:
    """Return a function of INT64 whose results are reduced modulo 2^64."""
    half = 1 << 63

    def wrapped(a: int, b: int) -> int:
        return (function(a, b) + half) % (2 * half) - half

    return wrapped


def _check_count(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise arithmetic.UndefinedError(f"{name} {value} is outside [{low}, {high}]")


# --- floating point -----------------------------------------------------------------------------


def _float_function(function: Callable[[float], float]) -> Callable[[float], float]:
    def rounded(x: float) -> float:
        return arithmetic.round_float(function(x), DType.FLOAT32)

    return rounded


def _exp(x: float) -> float:
    # math.exp raises where C's expf returns infinity.
    return math.inf if x > 700.0 else math.exp(x)


def _log(x: float) -> float:
    if x == 0.0:
        return -math.inf
    return math.log(x) if x > 0.0 else math.nan


def _sqrt(x: float) -> float:
    # Only -0.0 is negative and has a root: itself.
    return math.nan if x < 0.0 else math.sqrt(x)


def _floor(x: float) -> float:
    return math.copysign(float(math.floor(x)), x) if math.isfinite(x) else x


def _round(x: float) -> float:
    return math.copysign(float(math.floor(abs(x) + 0.5)), x) if math.isfinite(x) else x


def _ceil(x: float) -> float:
    return -_floor(-x)


def _round_half_to_even(x: float) -> float:
    return math.copysign(float(round(x)), x) if math.isfinite(x) else x


def _round_small(x: float) -> float:
    """Return the nearest whole number of one below 2^22: the last bit of the sum is worth 1."""
    magic = np.float32(1.5 * 2.0**23)
    return float(np.float32(x) + magic - magic)


def _float_of_bits(bits: int) -> float:
    """Return the float32 that a word stands for."""
    return float(np.array(bits, np.int32).view(np.float32)[()])


def _bits_of_float(x: float) -> int:
    """Return the word that stands for a float32."""
    with np.errstate(over="ignore"):
        return int(np.array(x, np.float32).view(np.int32)[()])


def _of_finite(function: Callable[[float], float]) -> Callable[[float], float]:
    """Return the function with NaN for infinities, as C has it; Python raises."""
    return lambda x: function(x) if math.isfinite(x) else math.nan


def _positive_part(x: float) -> float:
    """Return x where it is above zero, else 0.0."""
    return x if x > 0.0 else 0.0


def _of_two(function: np.ufunc) -> Callable[[float, float], float]:
    """Return a function of two numbers as C has it; Python's own raise outside their domains."""

    def rounded(x: float, y: float) -> float:
        with np.errstate(all="ignore"):
            return arithmetic.round_float(
                float(function(np.float64(x), np.float64(y))), DType.FLOAT32
            )

    return rounded


def _floor_divide(x: float, y: float) -> float:
    return arithmetic.round_float(_floor(arithmetic.divide(x, y, DType.FLOAT64)), DType.FLOAT32)


def _fused_multiply_add(a: float, b: float, c: float) -> float:
    """Return a * b + c, rounded once.

    The product of two float32 is exact in double, but its sum is not: rounded to odd there, it is
    rounded to float32 as the exact sum is (Boldo and Melquiond, "Emulation of a FMA and
    correctly rounded sums", 2008).
    """
    product = a * b
    total = product + c
    back = total - product
    error = (product - (total - back)) + (c - back)
    is_even = np.float64(total).view(np.int64) % 2 == 0
    if (error < 0.0 or error > 0.0) and is_even:  # neither of NaN nor of infinities
        total = math.nextafter(total, math.copysign(math.inf, error))
    return arithmetic.round_float(total, DType.FLOAT32)


# --- intervals ----------------------------------------------------------------------------------

_COUNT = Interval(0, 31)
_SHIFT = Interval(-31, 30)
_REDUCED = Interval(0, REDUCED_LIMIT)
_REDUCED_SHIFT = Interval(-31, 7)


def _high_mul_bounds(args: tuple[Interval, ...]) -> Interval:
    return corners(saturating_rounding_doubling_high_mul, args[0], args[1])


def _divide_bounds(args: tuple[Interval, ...]) -> Interval:
    return corners(rounding_divide_by_pot, args[0], args[1].intersect(_COUNT) or _COUNT)


def _shift_bounds(args: tuple[Interval, ...]) -> Interval:
    return corners(saturating_shift_left, args[0], args[1].intersect(_COUNT) or _COUNT)


def _requantize_bounds(args: tuple[Interval, ...]) -> Interval:
    x, multiplier, shift = args
    shifts = shift.intersect(_SHIFT) or _SHIFT
    result: Interval | None = None
    for s in _decisive_shifts(shifts):
        scale = Interval(1 << max(s, 0), 1 << max(s, 0))
        shifted = (x * scale).intersect(Interval.of_type(DType.INT32))
        if shifted is None:
            continue  # every x overflows: no value to bound
        high = corners(saturating_rounding_doubling_high_mul, shifted, multiplier)
        part = corners(rounding_divide_by_pot, high, Interval(max(-s, 0), max(-s, 0)))
        result = part if result is None else result.union(part)
    return result or Interval.of_type(DType.INT32)


def _decisive_shifts(shifts: Interval) -> tuple[int, ...]:
    """Shift that bound all others.

    Magnitudes grow with the shift, so the ends would do; but a large left shift may leave no x
    that does not overflow, and then a smaller one counts.
    """
    lefts = range(max(shifts.low, 1), shifts.high + 1)
    return (shifts.low, min(shifts.high, 0), *lefts) if shifts.low <= 0 else tuple(lefts)


def _any_long(_args: tuple[Interval, ...]) -> Interval:
    return Interval.of_type(DType.INT64)


def _reduced_bounds(args: tuple[Interval, ...]) -> Interval:
    """Return the results at the ends: for any factor, they grow with what is multiplied."""
    x, multiplier, shift = args
    multipliers = multiplier.intersect(_REDUCED) or _REDUCED
    shifts = shift.intersect(_REDUCED_SHIFT) or _REDUCED_SHIFT
    results = [
        (value * factor + (1 << (14 - by))) >> (15 - by)
        for value in (x.low, x.high)
        for factor in (multipliers.low, multipliers.high)
        for by in (shifts.low, shifts.high)
    ]
    whole = Interval.of_type(DType.INT32)
    return Interval(min(results), max(results)).intersect(whole) or whole


def _leading_zeros_bounds(args: tuple[Interval, ...]) -> Interval:
    return Interval(count_leading_zeros(args[0].high), count_leading_zeros(args[0].low))


# --- the table ----------------------------------------------------------------------------------

_I32 = DType.INT32


def _wrapping_signature(function: Callable[[int, int], int]) -> IntrinsicSignature:
    long = DType.INT64
    return IntrinsicSignature((long, long), long, _wrapping(function), _any_long)


def _float_signature(function: Callable[[float], float]) -> IntrinsicSignature:
    return IntrinsicSignature((DType.FLOAT32,), DType.FLOAT32, _float_function(function))


def _signature_of_two(function: Callable[[float, float], float]) -> IntrinsicSignature:
    return IntrinsicSignature((DType.FLOAT32, DType.FLOAT32), DType.FLOAT32, function)


SIGNATURES: Mapping[Intrinsic, IntrinsicSignature] = MappingProxyType({
    Intrinsic.SATURATING_ROUNDING_DOUBLING_HIGH_MUL: IntrinsicSignature(
        (_I32, _I32), _I32, saturating_rounding_doubling_high_mul, _high_mul_bounds
    ),
    Intrinsic.ROUNDING_DIVIDE_BY_POT: IntrinsicSignature(
        (_I32, _I32), _I32, rounding_divide_by_pot, _divide_bounds
    ),
    Intrinsic.MULTIPLY_BY_QUANTIZED_MULTIPLIER: IntrinsicSignature(
        (_I32, _I32, _I32), _I32, multiply_by_quantized_multiplier, _requantize_bounds
    ),
    Intrinsic.MULTIPLY_BY_REDUCED_MULTIPLIER: IntrinsicSignature(
        (DType.INT64, _I32, _I32), _I32, multiply_by_reduced_multiplier, _reduced_bounds
    ),
    Intrinsic.SATURATING_SHIFT_LEFT: IntrinsicSignature(
        (_I32, _I32), _I32, saturating_shift_left, _shift_bounds
    ),
    Intrinsic.COUNT_LEADING_ZEROS: IntrinsicSignature(
        (DType.UINT32,), _I32, count_leading_zeros, _leading_zeros_bounds
    ),
    Intrinsic.WRAPPING_ADD: _wrapping_signature(operator.add),
    Intrinsic.WRAPPING_SUB: _wrapping_signature(operator.sub),
    Intrinsic.WRAPPING_MUL: _wrapping_signature(operator.mul),
    Intrinsic.EXP: _float_signature(_exp),
    Intrinsic.LOG: _float_signature(_log),
    Intrinsic.SQRT: _float_signature(_sqrt),
    Intrinsic.TANH: _float_signature(math.tanh),
    Intrinsic.SIN: _float_signature(_of_finite(math.sin)),
    Intrinsic.COS: _float_signature(_of_finite(math.cos)),
    Intrinsic.FLOOR: _float_signature(_floor),
    Intrinsic.CEIL: _float_signature(_ceil),
    Intrinsic.ROUND: _float_signature(_round),
    Intrinsic.ROUND_HALF_TO_EVEN: _float_signature(_round_half_to_even),
    Intrinsic.ROUND_SMALL: _float_signature(_round_small),
    Intrinsic.ABS: _float_signature(abs),
    Intrinsic.POW: _signature_of_two(_of_two(np.power)),
    Intrinsic.ATAN2: _signature_of_two(_of_two(np.arctan2)),
    Intrinsic.FMOD: _signature_of_two(_of_two(np.fmod)),
    Intrinsic.FLOOR_DIVIDE: _signature_of_two(_floor_divide),
    Intrinsic.FUSED_MULTIPLY_ADD: IntrinsicSignature(
        (DType.FLOAT32,) * 3, DType.FLOAT32, _fused_multiply_add
    ),
    Intrinsic.NO_FP_CONTRACT: _float_signature(float),
    Intrinsic.FLOAT_OF_BITS: IntrinsicSignature((_I32,), DType.FLOAT32, _float_of_bits),
    Intrinsic.BITS_OF_FLOAT: IntrinsicSignature((DType.FLOAT32,), _I32, _bits_of_float),
    Intrinsic.POSITIVE_PART: _float_signature(_positive_part),
    Intrinsic.COMPILER_BARRIER: IntrinsicSignature((_I32,), _I32, int, lambda args: args[0]),
    **{
        form: (_signature_of_two if form in float_functions.OF_TWO else _float_signature)(meaning)
        for form, meaning in float_functions.meanings(_fused_multiply_add).items()
    },
})  # fmt: skip
