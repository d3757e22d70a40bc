"""Define in numpy what LOGISTIC and TANH give for int16, by the table of `sigmoid_table`."""

from __future__ import annotations

import numpy as np

from microtir.operators.common.fixed_point import Ints
from microtir.operators.common.sigmoid_table import (
    LAST_STEP,
    LOGISTIC_STEP_BITS,
    SATURATED_LOGISTIC,
    SATURATED_TANH,
    TANH_STEP_BITS,
    SigmoidScaling,
    sigmoid_table,
)

_TABLE = sigmoid_table().astype(np.int64)


def logistic_of_int16(x: Ints, scaling: SigmoidScaling) -> Ints:
    """Return LOGISTIC of stored int16 values, as stored values of scale 2^-15."""
    argument = _argument(x, scaling)
    height = _looked_up(np.abs(argument), LOGISTIC_STEP_BITS, SATURATED_LOGISTIC)
    mirrored = (1 << 25) - 1 - height
    return np.asarray((np.where(argument >= 0, height, mirrored) + (1 << 9)) >> 10)


def tanh_of_int16(x: Ints, scaling: SigmoidScaling) -> Ints:
    """Return TANH of stored int16 values, as stored values of scale 2^-15."""
    argument = _argument(x, scaling)
    height = _looked_up(np.abs(argument), TANH_STEP_BITS, SATURATED_TANH) - (1 << 23)
    return np.asarray((np.where(argument >= 0, height, -height - 1) + (1 << 7)) >> 8)


def _argument(x: Ints, scaling: SigmoidScaling) -> Ints:
    half = (1 << scaling.right_shift) >> 1
    return np.asarray((x * scaling.multiplier + half) >> scaling.right_shift)


def _looked_up(magnitude: Ints, step_bits: int, saturated: int) -> Ints:
    """Return the entries, with step_bits bits more, on the line from one to the next."""
    step, way = magnitude >> step_bits, magnitude & ((1 << step_bits) - 1)
    below = np.minimum(step, LAST_STEP)
    line = (_TABLE[below] << step_bits) + way * (_TABLE[below + 1] - _TABLE[below])
    return np.asarray(np.where(step > LAST_STEP, saturated << step_bits, line))
