"""Name the scalar types of PyTorch, by the numbers that an archive has for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from microtir.dtype import DType
from microtir.errors import ExportProblem, UnsupportedModelError
from microtir.graph.ir import Array
from microtir.operators.common.torch_operands import OtherType


@dataclass(frozen=True, slots=True)
class StoredType:
    """A type of tensors in the file: how numpy holds its bytes, and what it is in the graph.

    Floats of other widths are computed as float32, and are so in the interface of the model, too.
    """

    dtype: DType
    held: str
    is_bfloat16: bool = False

    def values(self, stored: Array) -> Array:
        """Return stored elements as an array of the type that the graph has."""
        native = stored.astype(stored.dtype.newbyteorder("="))
        if self.is_bfloat16:  # the upper half of a float32
            return (native.astype(np.uint32) << 16).view(np.float32)
        if self.dtype is DType.BOOL:
            return np.asarray(native != 0)
        with np.errstate(over="ignore"):
            return np.asarray(native.astype(self.dtype.value))


_STORED: Mapping[int, StoredType] = MappingProxyType(
    {
        1: StoredType(DType.UINT8, "u1"),
        2: StoredType(DType.INT8, "i1"),
        3: StoredType(DType.INT16, "i2"),
        4: StoredType(DType.INT32, "i4"),
        5: StoredType(DType.INT64, "i8"),
        6: StoredType(DType.FLOAT32, "f2"),
        7: StoredType(DType.FLOAT32, "f4"),
        8: StoredType(DType.FLOAT32, "f8"),
        12: StoredType(DType.BOOL, "u1"),
        13: StoredType(DType.FLOAT32, "u2", is_bfloat16=True),
        28: StoredType(DType.UINT16, "u2"),
        34: StoredType(DType.UINT32, "u4"),
        35: StoredType(DType.UINT64, "u8"),
    }
)

_OTHERS: Mapping[int, str] = MappingProxyType(
    {
        9: "complex32", 10: "complex64", 11: "complex128", 29: "float8_e4m3fn", 30: "float8_e5m2",
        31: "float8_e4m3fnuz", 32: "float8_e5m2fnuz", 33: "float8_e8m0fnu",
    }
)  # fmt: skip


def scalar_type(number: int) -> DType | OtherType:
    """Return the type that the graph has for a number of the file."""
    stored = _STORED.get(number)
    return OtherType(_OTHERS.get(number, f"type {number}")) if stored is None else stored.dtype


def stored_type(number: int, where: str) -> StoredType:
    """Return how tensors of a type are stored.

    Raises:
        UnsupportedModelError: it is a type that the graph does not have.
    """
    stored = _STORED.get(number)
    if stored is None:
        raise UnsupportedModelError(
            f"it has the type {_OTHERS.get(number, f'number {number}')}",
            where=where,
            legal="float16, bfloat16, float32, float64 (all computed in float32), integers, bool",
            fix="convert the model to float32 before it is exported: model.float()",
            export=ExportProblem.OTHER_FLOATS,
        )
    return stored
