"""Integers that a file stores and the reader itself needs: shapes, bounds of loops, indices."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from microtir.frontend.tflite_file import FileTensor
from microtir.graph.ir import Array
from microtir.operators.common.tflite_schema import TfliteType

INTEGERS: Mapping[int, str] = MappingProxyType({TfliteType.INT32: "<i4", TfliteType.INT64: "<i8"})
"""Formats in which numbers of a type are stored, by the type's number in the file."""


def stored_integers(tensor: FileTensor) -> Array | None:
    """Return a constant's values as int64; None if it is none, or its bytes are not its shape's."""
    stored = INTEGERS.get(tensor.type)
    if tensor.data is None or stored is None:
        return None
    if len(tensor.data) != math.prod(tensor.shape) * np.dtype(stored).itemsize:
        return None
    return np.frombuffer(tensor.data, stored).reshape(tensor.shape).astype(np.int64)
