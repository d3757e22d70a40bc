"""Define in numpy how a table of `lookup` for int16 is read."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from microtir.operators.common.fixed_point import Ints, wrap
from microtir.operators.common.lookup import STEP_BITS


def looked_up_int16(x: Ints, table: npt.NDArray[np.int16]) -> Ints:
    """Return the results of stored int16 values: those between two entries lie on a line.

    The reference keeps slope and result in 16 bits, where a step higher than that wraps.
    """
    entries = table.astype(np.int64)
    index = (len(entries) // 2) + (x >> STEP_BITS)
    slope = wrap(entries[index + 1] - entries[index], 16)
    way = x & ((1 << STEP_BITS) - 1)
    delta = (slope * way + (1 << (STEP_BITS - 1))) >> STEP_BITS
    return wrap(entries[index] + delta, 16)
