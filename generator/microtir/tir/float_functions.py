"""Gives functions of floats a form of few instructions: polynomials, the same bits everywhere.

What a C library computes takes more, and its last bits differ from library to library.  Numbers and
steps stand here once: the helpers of generated C print them, and the meanings below compute them.
The coefficients are minimax fits by relative error (least squares at Chebyshev nodes, weighted anew
until the largest error no longer falls), rounded to float32 one after another, those that are left
being fitted again each time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

from microtir.dtype import DType
from microtir.tir import arithmetic
from microtir.tir.float_power import power
from microtir.tir.ir import Intrinsic

_Step: TypeAlias = Callable[[float, float, float], float]  # a * b + c


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(map(float.fromhex, text.split()))


POLYNOMIALS: Mapping[str, tuple[float, ...]] = MappingProxyType({
    # (exp(r) - 1 - r) / r^2 for |r| up to ln(2) / 2
    "exp": _numbers("0x1.6a4e2ep-10 0x1.123996p-7 0x1.5558bp-5 0x1.555492p-3 0x1.fffffcp-2"),
    # (tanh(x) - x) / x^3 in x^2 for |x| up to 5/8
    "tanh": _numbers("-0x1.750ce2p-8 0x1.51f8cep-6 -0x1.b835a4p-5 0x1.1106f6p-3 -0x1.555532p-2"),
    # (log(1 + r) - r) / r^2 for |r| up to 1/3, the last being exact
    "log": _numbers(
        "-0x1.07c48ap-3 0x1.1e6ccap-3 -0x1.f332b8p-4 0x1.1ed562p-3 -0x1.559c66p-3 0x1.99d05p-3 "
        "-0x1.fffefap-3 0x1.555506p-2 -0x1p-1"
    ),
    # (sin(r) - r) / r^3 in r^2 for |r| up to pi / 4
    "sin": _numbers("-0x1.9951f6p-13 0x1.110774p-7 -0x1.555546p-3"),
    # cos(r) in r^2 for |r| up to pi / 4, the last two being exact
    "cos": _numbers("0x1.99e80cp-16 -0x1.6c0c28p-10 0x1.55554ap-5 -0x1p-1 0x1p+0"),
    # (atan(r) - r) / r^3 in r^2 for r from 0 to 1
    "atan": _numbers(
        "-0x1.d35742p-10 0x1.6423dep-7 -0x1.fd7d9cp-6 0x1.da29f4p-5 -0x1.58091ap-4 0x1.c08c4ep-4 "
        "-0x1.242086p-3 0x1.9991e4p-3 -0x1.55553ep-2"
    ),
})  # fmt: skip
"""Coefficients, the highest power first."""

LOG2_E, LN2_HIGH, LN2_LOW = _numbers("0x1.715476p+0 0x1.63p-1 -0x1.bd0106p-13")
"""1 / ln(2), and ln(2) in two parts: a product of the first with a whole number is exact."""

TWO_BY_PI, QUARTER_HIGH, QUARTER_MIDDLE, QUARTER_LOW = _numbers(
    "0x1.45f306p-1 -0x1.922p+0 0x1.2aeep-18 0x1.e973dcp-35"
)
"""2 / pi, and -pi / 2 in three parts: products of the first two with whole numbers are exact."""

QUARTER, QUARTER_REST, HALF, HALF_REST = _numbers(
    "0x1.921fb6p+0 -0x1.777a5cp-25 0x1.921fb6p+1 -0x1.777a5cp-24"
)
"""pi / 2 and pi, and what is to be added to each."""

DIGITS = (
    0, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB,
)  # fmt: skip
"""Words of the binary digits of 2 / pi, those from 2^31 on: enough for any float32."""
QUARTER_DIGITS = 0xC90FDAA2  # of pi / 2, of which the last is worth 2^-31

SHIFTER = 1.5 * 2.0**23  # the last bit of a sum with it is worth 1
NEAR = 64.0  # up to here there is no more to ask; its bits are an immediate of Thumb
HIGHEST, LOWEST = _numbers("0x1.62e43p+6 -0x1.5d589ep+6")  # from there infinite, below zero
SMALL = 0.625  # of a hyperbolic tangent by its own polynomial
LEAST_REST = float.fromhex("0x1.555556p-1")  # 2/3, of a number whose logarithm is looked for
TINY, FAR = 2.0**-12, 64.0  # an angle whose sine is itself; one that takes more digits of pi

OWN: Mapping[tuple[Intrinsic, bool], Intrinsic] = MappingProxyType({
    (Intrinsic.EXP, False): Intrinsic.EXP_POLYNOMIAL,
    (Intrinsic.EXP, True): Intrinsic.EXP_FUSED,
    (Intrinsic.TANH, False): Intrinsic.TANH_POLYNOMIAL,
    (Intrinsic.TANH, True): Intrinsic.TANH_FUSED,
    (Intrinsic.LOG, False): Intrinsic.LOG_POLYNOMIAL,
    (Intrinsic.LOG, True): Intrinsic.LOG_FUSED,
    (Intrinsic.SIN, False): Intrinsic.SIN_POLYNOMIAL,
    (Intrinsic.SIN, True): Intrinsic.SIN_FUSED,
    (Intrinsic.COS, False): Intrinsic.COS_POLYNOMIAL,
    (Intrinsic.COS, True): Intrinsic.COS_FUSED,
    (Intrinsic.ATAN2, False): Intrinsic.ATAN2_POLYNOMIAL,
    (Intrinsic.ATAN2, True): Intrinsic.ATAN2_FUSED,
    (Intrinsic.POW, False): Intrinsic.POW_BY_INTEGERS,
    (Intrinsic.POW, True): Intrinsic.POW_BY_INTEGERS,
})  # fmt: skip
"""The form of a function; for CPUs that fuse a product and its sum, the steps do."""

OF_TWO = frozenset(form for (of, _), form in OWN.items() if of in {Intrinsic.ATAN2, Intrinsic.POW})
"""The forms that take two numbers."""


def _rounded(x: float) -> float:
    return arithmetic.round_float(x, DType.FLOAT32)


def multiply_add(a: float, b: float, c: float) -> float:
    """Return a * b + c, rounded twice."""
    return _rounded(_rounded(a * b) + c)


def exp(step: _Step, x: float) -> float:
    """Return e to the power of x as the steps give it; 0 below 2^-126, the least normal number."""
    if not x < HIGHEST:
        return x + math.inf
    if x < LOWEST:
        return 0.0
    minus = SHIFTER - step(x, LOG2_E, SHIFTER)
    rest = step(minus, LN2_LOW, step(minus, LN2_HIGH, x))
    grown = _rounded(1.0 + step(_polynomial(step, "exp", rest), _rounded(rest * rest), rest))
    return _rounded(math.ldexp(grown, -int(minus)))


def tanh(step: _Step, x: float) -> float:
    """Return the hyperbolic tangent of x as the steps give it."""
    size = abs(x)
    if size < SMALL:
        square = _rounded(x * x)
        return step(_polynomial(step, "tanh", square), _rounded(square * x), x)
    rest = _rounded(2.0 / _rounded(exp(step, _rounded(size + size)) + 1.0))
    return math.copysign(_rounded(1.0 - rest), x)


def log(step: _Step, x: float) -> float:
    """Return the natural logarithm of x as the steps give it."""
    if not 0.0 < x < math.inf:
        return -math.inf if x == 0.0 else math.nan if x < 0.0 else x
    rest, exponent = math.frexp(x)
    if rest < LEAST_REST:
        rest, exponent = 2.0 * rest, exponent - 1
    above = rest - 1.0
    total = step(_polynomial(step, "log", above), _rounded(above * above), above)
    return step(exponent, LN2_HIGH, step(exponent, LN2_LOW, total))


def sin(step: _Step, x: float) -> float:
    """Return the sine of x as the steps give it."""
    return x if abs(x) < TINY else _turned(step, x, 0)


def cos(step: _Step, x: float) -> float:
    """Return the cosine of x as the steps give it."""
    return 1.0 if abs(x) < TINY else _turned(step, x, 1)


def _turned(step: _Step, x: float, quarters: int) -> float:
    """Return the sine of x and so many quarters of a turn."""
    if not math.isfinite(x):
        return math.nan
    if abs(x) < FAR:
        whole = step(x, TWO_BY_PI, SHIFTER) - SHIFTER
        rest = step(whole, QUARTER_MIDDLE, step(whole, QUARTER_HIGH, x))
        rest = step(whole, QUARTER_LOW, rest)
    else:
        whole, rest = _beside_quarters(abs(x))
        whole, rest = (whole, rest) if x > 0.0 else (-whole, -rest)
    quarters += int(whole)
    square = _rounded(rest * rest)
    if quarters % 2 == 0:
        y = step(_polynomial(step, "sin", square), _rounded(square * rest), rest)
    else:
        y = _polynomial(step, "cos", square)
    return y if quarters & 2 == 0 else -y


def _beside_quarters(size: float) -> tuple[int, float]:
    """Return quarters of a turn, and what is left of a size of at least `FAR` beside them.

    Digits of 2 / pi that add whole turns to the product are left out (M. Payne and R. Hanek,
    "Radian reduction for trigonometric functions", 1983); 62 digits of a quarter remain.
    """
    fraction, exponent = math.frexp(size)
    words = 0
    for word in DIGITS:
        words = words << 32 | word
    first = exponent + 6  # of the digits that say something of less than a turn
    digits = words >> (32 * len(DIGITS) - 96 - first) & (1 << 96) - 1
    mantissa = int(fraction * 2.0**24)
    # The product as the C adds it up: what is worth less than 2^-62 is cut off before.
    turn = (mantissa * (digits >> 32) + (mantissa * (digits & 0xFFFFFFFF) >> 32)) % (1 << 64)
    whole = (turn + (1 << 61)) >> 62
    rest = turn - (whole << 62)
    zeros = 64 - abs(rest).bit_length()
    size = _rounded(((abs(rest) << zeros) >> 32) * QUARTER_DIGITS >> 32)
    return whole, math.copysign(math.ldexp(size, -29 - zeros), rest)


def atan2(step: _Step, y: float, x: float) -> float:
    """Return the angle of the point (x, y) as the steps give it."""
    if math.isnan(x) or math.isnan(y):
        return math.nan
    across, along, is_left = abs(y), abs(x), math.copysign(1.0, x) < 0.0
    is_steep = across > along
    if across == along:
        ratio = 0.0 if across == 0.0 else 1.0
    else:
        ratio = arithmetic.divide(min(across, along), max(across, along), DType.FLOAT32)
    square = _rounded(ratio * ratio)
    angle = step(_polynomial(step, "atan", square), _rounded(square * ratio), ratio)
    if is_steep != is_left:
        angle = -angle
    if is_steep:
        angle = _rounded(QUARTER + _rounded(angle + QUARTER_REST))
    elif is_left:
        angle = _rounded(HALF + _rounded(angle + HALF_REST))
    return math.copysign(angle, y)


def _polynomial(step: _Step, name: str, x: float) -> float:
    value, *others = POLYNOMIALS[name]
    for number in others:
        value = step(value, x, number)
    return value


def meanings(fused: _Step) -> Mapping[Intrinsic, Callable[..., float]]:
    """Return the meanings of the forms, `fused` being a product and its sum rounded once."""
    functions: Mapping[Intrinsic, Callable[..., float]] = {
        Intrinsic.EXP: exp, Intrinsic.TANH: tanh, Intrinsic.LOG: log, Intrinsic.SIN: sin,
        Intrinsic.COS: cos, Intrinsic.ATAN2: atan2,
    }  # fmt: skip
    return {
        form: partial(functions[of], fused if fuses else multiply_add)
        for (of, fuses), form in OWN.items()
        if of in functions
    } | {Intrinsic.POW_BY_INTEGERS: power}
