"""Write FlatBuffers: tables, vectors of numbers, vectors of what lies outside of its table.

A FlatBuffer is written from its end, so what an offset refers to is there before its table.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, TypeAlias

import flatbuffers
import numpy as np
import numpy.typing as npt


class Wire(Enum):
    """Storage of a field in a table: the word in the name of the FlatBuffer builder's method."""

    INT8 = "Int8"
    UINT8 = "Uint8"
    INT32 = "Int32"
    UINT32 = "Uint32"
    BOOL = "Bool"
    FLOAT32 = "Float32"
    OFFSET = "UOffsetTRelative"


Entry: TypeAlias = tuple[int, Wire, Any]
"""Slot, storage and value of a table's field; an offset of 0 is a field left out."""


def table(fb: flatbuffers.Builder, *entries: Entry) -> int:
    """Write a table; what its offsets refer to must have been written before."""
    fb.StartObject(max((slot for slot, _, _ in entries), default=-1) + 1)
    for slot, wire, value in entries:
        # Scalars are stored even if they equal the schema's default, which then need not be known.
        absent = 0 if wire is Wire.OFFSET else None
        getattr(fb, f"Prepend{wire.value}Slot")(slot, value, absent)
    return int(fb.EndObject())


def vector(fb: flatbuffers.Builder, values: Sequence[float], dtype: npt.DTypeLike) -> int:
    """Write a vector of numbers."""
    return int(fb.CreateNumpyVector(np.asarray(values, dtype=dtype)))


def offset_vector(fb: flatbuffers.Builder, offsets: Sequence[int]) -> int:
    """Write a vector of tables that have been written."""
    fb.StartVector(4, len(offsets), 4)
    # The file is written from its end, so the last element comes first.
    for offset in reversed(offsets):
        fb.PrependUOffsetTRelative(offset)
    return int(fb.EndVector())
