"""Compute how a table of `lookup` for int16 is read, as tensor expressions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.dtype import DType
from microtir.operators.common.arithmetic import wide
from microtir.operators.common.lookup import STEP_BITS


class Int16Table:
    """A table as a constant of one function, and look-ups in it."""

    def __init__(self, table: npt.NDArray[np.int16], name: str = "table") -> None:
        self._entries = te.constant(table, name)
        self._middle = len(table) // 2
        self._wraps = int(np.abs(np.diff(table.astype(np.int64))).max()) > DType.INT16.max

    def at(self, x: te.Expr) -> te.Expr:
        """Return the result of a stored int16, as an INT32 within int16."""
        value = te.bind("value", wide(x))
        index = te.bind("index", (value >> STEP_BITS) + self._middle)
        first = te.bind("first", wide(self._entries[index]))
        slope = self._in_16_bits(wide(self._entries[index + 1]) - first)
        way = value & ((1 << STEP_BITS) - 1)
        return self._in_16_bits(first + ((slope * way + (1 << (STEP_BITS - 1))) >> STEP_BITS))

    def _in_16_bits(self, value: te.Expr) -> te.Expr:
        """Return what the reference keeps in an int16, where that is not the value itself."""
        if not self._wraps:
            return value
        return ((value + (1 << 15)) & ((1 << 16) - 1)) - (1 << 15)
