"""Scalar types that microtir computes with, shared by every IR."""

from __future__ import annotations

from enum import Enum


class DType(Enum):
    """A scalar type: its value is the name used in text forms and in numpy."""

    BOOL = "bool"
    INT8 = "int8"
    UINT8 = "uint8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    UINT32 = "uint32"
    INT64 = "int64"
    UINT64 = "uint64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"

    # Asked for at every node of every expression, so worked out once.
    is_float: bool
    is_int: bool  # BOOL is not one
    is_signed: bool
    bits: int
    bytes: int  # size of one element in memory

    def __init__(self, name: str) -> None:
        kind = name.rstrip("0123456789")
        self.bits = 8 if kind == "bool" else int(name.removeprefix(kind))
        self.bytes = self.bits // 8
        self.is_float = kind == "float"
        self.is_int = kind in ("int", "uint")
        self.is_signed = kind in ("int", "float")
        self._low = -(1 << (self.bits - 1)) if self.is_signed else 0
        self._high = 1 if kind == "bool" else (1 << (self.bits - self.is_signed)) - 1

    @property
    def min(self) -> int:
        """Return the lowest value of an integer type (0 for BOOL)."""
        assert not self.is_float, "floating point has no integer range"
        return self._low

    @property
    def max(self) -> int:
        """Return the highest value of an integer type (1 for BOOL)."""
        assert not self.is_float, "floating point has no integer range"
        return self._high
