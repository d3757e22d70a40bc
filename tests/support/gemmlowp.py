"""The sigmoid and tanh of gemmlowp for int16, which LiteRT's integer LSTM computes, in numpy.

tflite-micro looks both up in tables.  Functions take values of 2^(bits - 15) for one, and return
values of 2^-15.
"""

from __future__ import annotations

import numpy as np

from microtir.operators.common.fixed_point import Ints

_ONE = 32767
_POWERS = (
    (-2, 25520), (-1, 19875), (0, 12055), (1, 4435), (2, 600), (3, 11), (4, 0),
)  # fmt: skip
"""Powers of e to -2^n, of 2^-15."""


def logistic(values: Ints, bits: int) -> Ints:
    """Return the sigmoid."""
    of_positive = _shifted(_reciprocal(_exponential(-np.abs(values), bits)), 1)
    signed = np.where(values > 0, of_positive, _ONE - of_positive)
    return np.where(values == 0, 1 << 14, signed)


def tanh(values: Ints, bits: int) -> Ints:
    """Return the hyperbolic tangent."""
    of_negative = _shifted(_reciprocal(_exponential(-np.abs(values), bits + 1)) - (1 << 13), 2)
    return np.where(values == 0, 0, np.where(values < 0, -of_negative, of_negative))


def _exponential(values: Ints, bits: int) -> Ints:
    """Return e to the values, which are not above 0."""
    fraction = 15 - bits
    quarter = 1 << (fraction - 2)
    near = (values & (quarter - 1)) - quarter
    result, rest = _exponential_near_0(_shifted(near, bits)), near - values
    for exponent, factor in _POWERS:
        if bits > exponent:
            is_set = (rest & (1 << (fraction + exponent))) != 0
            result = np.where(is_set, _product(result, factor), result)
    return np.where(values == 0, _ONE, result)


def _exponential_near_0(values: Ints) -> Ints:
    """Return e to the values, which are from -1/4 to 0."""
    x = values + (1 << 12)
    squared = _product(x, x)
    cubed, fourth = _product(squared, x), _product(squared, squared)
    series = _product(_halved(fourth, 2) + cubed, 10923) + squared
    return np.clip(28918 + _product(x + _halved(series, 1), 28918), -_ONE - 1, _ONE)


def _reciprocal(values: Ints) -> Ints:
    """Return 2 / (1 + x) in 2^-13, by three steps of Newton."""
    total = values + _ONE
    denominator = (total + np.where(total >= 0, 1, -1)) // 2
    x = 23130 + _product(denominator, -15420)
    for _ in range(3):
        x = x + _shifted(_product(x, (1 << 13) - _product(denominator, x)), 2)
    return x


def _product(a: Ints, b: Ints | int) -> Ints:
    """Return the high half of twice a product, rounded."""
    doubled = a * b + np.where(a * np.sign(b) >= 0, 1 << 14, 1 - (1 << 14))
    return np.where(doubled >= 0, doubled >> 15, -(-doubled >> 15))


def _halved(values: Ints, times: int) -> Ints:
    """Return a quotient by a power of two, rounded to nearest, ties away from 0."""
    mask = (1 << times) - 1
    is_up = (values & mask) > (mask >> 1) + (values < 0)
    return np.asarray((values >> times) + is_up)


def _shifted(values: Ints, places: int) -> Ints:
    return np.asarray(np.clip(values << places, -_ONE - 1, _ONE))
