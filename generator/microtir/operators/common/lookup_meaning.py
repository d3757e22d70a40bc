"""Define in numpy how a table of `lookup` for int16 is read."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from microtir.operators.common import fixed_point, lookup


def looked_up_int16(x: fixed_point.Ints, table: npt.NDArray[np.int16]) -> fixed_point.Ints:
    """Return the results of stored int16 values: those between two entries lie on a line.

    The reference keeps slope and result in 16 bits, where a step higher than that wraps.
    """
    entries = table.astype(np.int64)
    index = (len(entries) // 2) + (x >> lookup.STEP_BITS)
    slope = fixed_point.wrap(entries[index + 1] - entries[index], 16)
    way = x & ((1 << lookup.STEP_BITS) - 1)
    delta = (slope * way + (1 << (lookup.STEP_BITS - 1))) >> lookup.STEP_BITS
    return fixed_point.wrap(entries[index] + delta, 16)
