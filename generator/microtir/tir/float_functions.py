"""Gives functions of floats a form of few instructions: polynomials, the same bits everywhere.

What a C library computes takes more, and its last bits differ from library to library.  Numbers and
steps stand here once: the helpers of generated C print them, and the meanings below compute them.
The coefficients are minimax fits by relative error, rounded to float32 one after another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

from microtir.dtype import DType
from microtir.tir import arithmetic
from microtir.tir.ir import Intrinsic

_Step: TypeAlias = Callable[[float, float, float], float]  # a * b + c


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(map(float.fromhex, text.split()))


EXP = _numbers("0x1.6a4e2ep-10 0x1.123996p-7 0x1.5558bp-5 0x1.555492p-3 0x1.fffffcp-2")
"""Coefficients of (exp(r) - 1 - r) / r^2 for |r| up to ln(2) / 2, the highest power first."""

TANH = _numbers("-0x1.750ce2p-8 0x1.51f8cep-6 -0x1.b835a4p-5 0x1.1106f6p-3 -0x1.555532p-2")
"""Coefficients of (tanh(x) - x) / x^3 in x^2 for |x| up to 5/8, the highest power first."""

LOG2_E, LN2_HIGH, LN2_LOW = _numbers("0x1.715476p+0 0x1.63p-1 -0x1.bd0106p-13")
"""1 / ln(2), and ln(2) in two parts: a product of the first with a whole number is exact."""

SHIFTER = 1.5 * 2.0**23  # the last bit of a sum with it is worth 1
NEAR = 64.0  # up to here there is no more to ask; its bits are an immediate of Thumb
HIGHEST, LOWEST = _numbers("0x1.62e43p+6 -0x1.5d589ep+6")  # from there infinite, below zero
SMALL = 0.625  # of a hyperbolic tangent by its own polynomial

OWN: Mapping[tuple[Intrinsic, bool], Intrinsic] = MappingProxyType({
    (Intrinsic.EXP, False): Intrinsic.EXP_POLYNOMIAL,
    (Intrinsic.EXP, True): Intrinsic.EXP_FUSED,
    (Intrinsic.TANH, False): Intrinsic.TANH_POLYNOMIAL,
    (Intrinsic.TANH, True): Intrinsic.TANH_FUSED,
})  # fmt: skip
"""The form of a function; for CPUs that fuse a product and its sum, the steps do."""


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
    grown = _rounded(1.0 + step(_polynomial(step, EXP, rest), _rounded(rest * rest), rest))
    return _rounded(math.ldexp(grown, -int(minus)))


def tanh(step: _Step, x: float) -> float:
    """Return the hyperbolic tangent of x as the steps give it."""
    size = abs(x)
    if size < SMALL:
        square = _rounded(x * x)
        return step(_polynomial(step, TANH, square), _rounded(square * x), x)
    rest = _rounded(2.0 / _rounded(exp(step, _rounded(size + size)) + 1.0))
    return math.copysign(_rounded(1.0 - rest), x)


def _polynomial(step: _Step, coefficients: tuple[float, ...], x: float) -> float:
    value, *others = coefficients
    for number in others:
        value = step(value, x, number)
    return value


def meanings(fused: _Step) -> Mapping[Intrinsic, Callable[[float], float]]:
    """Return the meanings of the forms, `fused` being a product and its sum rounded once."""
    functions = {Intrinsic.EXP: exp, Intrinsic.TANH: tanh}
    return {
        form: partial(functions[of], fused if fuses else multiply_add)
        for (of, fuses), form in OWN.items()
    }
