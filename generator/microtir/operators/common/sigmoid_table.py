"""The table by which LOGISTIC and TANH are computed on int16, and the scaling of what it is asked.

Both functions are one: tanh(x) is 2 sigmoid(2 x) - 1.  The table holds the sigmoid of 0, 1/24, 2/24
... in 16 bits; between two entries the sigmoid is a line, below 0 its mirror image.  How a value is
looked up stands in `sigmoid_table_meaning` for numpy and in `sigmoid_table_formula` for tensor
expressions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from microtir.operators.common import fixed_point, problem

_ENTRIES = 256
_ENTRIES_PER_UNIT = 24
_ONE = 1 << 16

LOGISTIC_STEP_BITS = 9
"""An entry lies behind each 2^9 of a scaled argument of LOGISTIC: 1 is 3 * 2^12."""

TANH_STEP_BITS = 8
"""An entry lies behind each 2^8 of a scaled argument of TANH, whose sigmoid has twice its steps."""

LAST_STEP = _ENTRIES - 2
"""Arguments behind the step from this entry on to the last one saturate."""

SATURATED_LOGISTIC, SATURATED_TANH = (fixed_point.INT16_MAX << 10) >> LOGISTIC_STEP_BITS, _ONE - 1
"""Results of LOGISTIC and TANH for arguments that saturate, in the unit of the entries."""


class SigmoidScaling(NamedTuple):
    """The scaling from an int16 to a table's argument: x * multiplier * 2^-right_shift, rounded.

    The multiplier is at least 0, the shift 0 to 31, and every product fits an int32.
    """

    multiplier: int
    right_shift: int


def sigmoid_table() -> npt.NDArray[np.uint16]:
    """Return the table.

    Every entry is raised by half of what the line to the next one lies too low in the middle, which
    halves the largest error.
    """

    def sigmoid(index: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.asarray(_ONE / (1.0 + np.exp(-index / _ENTRIES_PER_UNIT)))

    index = np.arange(_ENTRIES, dtype=np.float64)
    too_low = sigmoid(index + 0.5) - (sigmoid(index) + sigmoid(index + 1)) / 2
    entries = np.floor(sigmoid(index) + too_low / 2 + 0.5)
    entries[-1] = _ONE - 1
    return entries.astype(np.uint16)


LINES = 2 * _ENTRIES
"""Lines of `signed_lines`."""


def signed_lines(*, saturates: bool) -> npt.NDArray[np.int16]:
    """Return the lines of the sigmoid over arguments of both signs, as pairs that SMLAD multiplies.

    Line k belongs to the step k - 256 of a signed argument: how much it rises, and 2^15 less what
    it begins with.  That of a negative argument is the mirror image, in the direction of the
    argument.  The last line, which saturates, has no slope.

    Args:
        saturates: it ends at `SATURATED_TANH`, else at `SATURATED_LOGISTIC`.
    """
    entries = sigmoid_table().astype(np.int64)
    if not saturates:
        entries[-1] = entries[-2]
    entries = np.append(entries, entries[-1])
    rises = np.diff(entries)
    begins = np.concatenate([_ONE - entries[:0:-1], entries[:-1]])
    pairs = np.stack([np.concatenate([rises[::-1], rises]), _ONE // 2 - begins], axis=1)
    return pairs.astype(np.int16)


def power_of_two_scaling(exponent: int) -> SigmoidScaling:
    """Return the scaling of values of scale 2^exponent; at most 2^2."""
    shift = exponent + 12
    return SigmoidScaling(3 << max(shift, 0), max(-shift, 0))


def sigmoid_scaling(scale: float, shifts: tuple[int, ...]) -> SigmoidScaling:
    """Return the scaling of an operator's input, whose scale is a float32.

    Args:
        scale: of the input.
        shifts: scales 2^(shift - 12) of this or nearly this value have an exact multiplier; others,
            powers of two or not, one of 15 bits.
    """
    logarithm = math.log2(scale)
    shift = 12 + round(logarithm)
    if abs(logarithm - round(logarithm)) < 1e-3 and shift in shifts:
        return power_of_two_scaling(shift - 12)
    multiplier, right = scale * 4096.0 * 3.0, 0
    while multiplier <= fixed_point.INT16_MAX / 2.0 and right <= 30:
        multiplier, right = multiplier * 2.0, right + 1
    return SigmoidScaling(int(multiplier), right)


def check_scaling(scaling: SigmoidScaling) -> Iterator[problem.Problem]:
    """Find a scale whose multiplier takes more than 15 bits, so that products leave int32.

    The multiplier of the smallest scales is 0, and so is what they scale.  tflite-micro takes that
    for the multiplier of a power of two, and shifts it out of range.
    """
    if scaling.multiplier > fixed_point.INT16_MAX:
        most = (fixed_point.INT16_MAX + 1) / 12288
        yield problem.Problem("the scale of its input is out of range", f"below {most:g}")
