"""Writes types of elements as DLPack's struct has them."""

from __future__ import annotations

from microtir.dtype import DType


def dlpack_dtype(dtype: DType) -> str:
    """Return the initialiser of a DLDataType of one lane."""
    kinds = {DType.BOOL: "kDLBool", DType.FLOAT32: "kDLFloat", DType.FLOAT64: "kDLFloat"}
    kind = kinds.get(dtype, "kDLInt" if dtype.is_signed else "kDLUInt")
    return f"{{{kind}, {dtype.bits}, 1}}"
