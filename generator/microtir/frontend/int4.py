"""Weights of 4 bits, of which a file stores two in a byte."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

LOWEST, HIGHEST = -8, 7


def packed_bytes(elements: int) -> int:
    """Return the bytes of so many values; of an odd number the last byte holds one."""
    return -(-elements // 2)


def unpacked(data: memoryview, elements: int) -> npt.NDArray[np.int8]:
    """Return the values of a tensor in the order of its elements, the low half of a byte first."""
    both = np.frombuffer(data, np.int8)
    low = np.left_shift(both, 4) >> 4
    values = np.stack([low, both >> 4], axis=-1).reshape(-1)[:elements]
    values.setflags(write=False)
    return values
