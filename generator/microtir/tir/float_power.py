"""Gives powers of floats a form in whole numbers: no CPU and no compiler rounds them another way.

The binary logarithm of the base is needed to more digits than a float has, which products of
32 bits have; they also take less than emulated floats do.  The coefficients are fits as those of
`float_functions`, rounded to their last bit one after another.
"""

from __future__ import annotations

import math

from microtir.dtype import DType
from microtir.tir import arithmetic

FACTORS = (179, 172, 165, 159, 153, 147, 142, 137, 133, 128, 122, 115, 109, 103, 98, 94)
"""Factors in 128ths, each about the reciprocal of a 16th of the numbers from LEAST_REST on."""

LOGARITHMS = (
    0xFFC2125319AE3BBF, 0xFFC97028118EFABF, 0xFFD11C5A8B020988, 0xFFD7F37389C9F76D,
    0xFFDF0DEA489F9FED, 0xFFE67122F8818F21, 0xFFECD5161D8751E6, 0xFFF373AF48DCE653,
    0xFFF8EC8151BD5528, 0, 0x0008DD9953002A4F, 0x0013C6FB650CDE51,
    0x001DAC22D3E441D3, 0x002820C02F87D945, 0x00315130157F7A65, 0x0039033B85A8BFC8,
)  # fmt: skip
"""Minus the binary logarithms of the factors, in units of 2^-55, modulo 2^64."""

LOG2 = (1020437844, 1559285231, 1899054026, 2387460486, 3375786915, 2103462204)
"""Coefficients of log2(1 + r) / r - 1 in r + 1/16 for |r| up to 1/30, the highest power first.

They are in units of 2^-32, and every second one is taken off.
"""

EXP2 = (466040, 2671431, 20785133, 119149572, 515889647, 1488521813, 2147483652)
"""Coefficients of 2 to the power of r from 0 to 1 in units of 2^-31, the highest power first."""

LEAST_REST = 0x3F32AAAB  # bits of the least number whose logarithm needs no whole power of two


def power(x: float, y: float) -> float:
    """Return x to the power of y, special values as C's powf has them."""
    if x == 1.0 or y == 0.0:
        return 1.0
    if math.isnan(x) or math.isnan(y):
        return math.nan
    size, is_minus = abs(x), math.copysign(1.0, x) < 0.0
    is_whole = math.isinf(y) or y == math.floor(y)
    if is_minus and not is_whole and size not in (0.0, math.inf):
        return math.nan
    if size == 1.0:
        result = 1.0
    elif size in (0.0, math.inf) or math.isinf(y):
        result = math.inf if (size > 1.0) == (y > 0.0) else 0.0
    else:
        result = _power_of_size(size, y)
    is_odd = math.isfinite(y) and abs(math.fmod(y, 2.0)) == 1.0
    return -result if is_minus and is_odd else result


def _power_of_size(size: float, y: float) -> float:
    """Return a power of a positive base other than 1; neither is infinite."""
    log = _logarithm(size)
    digits, magnitude = math.frexp(abs(y))
    is_minus = (log < 0) != (y < 0.0)
    zeros = 64 - abs(log).bit_length()
    # Both have all their digits at the upper end, and the product has the upper half of its.
    product = int(digits * 2.0**32) * (abs(log) << zeros) >> 32
    shift = 23 + zeros - magnitude
    if shift < 23:
        return 0.0 if is_minus else math.inf
    product = product >> shift  # in units of 2^-32
    whole, rest = divmod(-product if is_minus else product, 1 << 32)
    value, *others = EXP2
    for number in others:
        value = number + (value * rest >> 32)
    lost = 8 + max(-126 - whole, 0)  # digits beyond those of a float, more below normal numbers
    rounded = (value >> (lost - 1)) + 1 >> 1
    return arithmetic.round_float(math.ldexp(rounded, whole - 31 + lost), DType.FLOAT32)


def _logarithm(size: float) -> int:
    """Return the binary logarithm of a positive number in units of 2^-55."""
    rest, whole = math.frexp(size)
    bits = (0x3F << 24) - (1 << 23) + int(rest * 2.0**24)  # of the rest as a float
    octave, place = divmod(bits - LEAST_REST, 1 << 23)
    place >>= 19
    above = int(math.ldexp(rest, 24 - octave)) * FACTORS[place] - (1 << 31)  # in units of 2^-31
    total = (above + (1 << 27)) * 2
    value, *others = LOG2
    for number in others:
        value = number - (value * total >> 32)
    of_rest = ((abs(above) << 32) + abs(above) * value + 128) >> 8
    of_factor = LOGARITHMS[place] - (LOGARITHMS[place] >> 63 << 64)
    return (whole + octave << 55) + of_factor + (of_rest if above >= 0 else -of_rest)
