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
    FLOAT32 = "float32"
    FLOAT64 = "float64"

    @property
    def is_float(self) -> bool:
        return self in (DType.FLOAT32, DType.FLOAT64)

    @property
    def is_int(self) -> bool:
        """True for the integer types; BOOL is not one."""
        return not self.is_float and self is not DType.BOOL

    @property
    def is_signed(self) -> bool:
        return not self.value.startswith("u") and self is not DType.BOOL

    @property
    def bits(self) -> int:
        return 8 if self is DType.BOOL else int(self.value.lstrip("uintfloa"))

    @property
    def bytes(self) -> int:
        """Size of one element in memory."""
        return self.bits // 8

    @property
    def min(self) -> int:
        """Lowest value of an integer type (0 for BOOL)."""
        assert not self.is_float, "floating point has no integer range"
        return -(1 << (self.bits - 1)) if self.is_signed else 0

    @property
    def max(self) -> int:
        """Highest value of an integer type (1 for BOOL)."""
        assert not self.is_float, "floating point has no integer range"
        if self is DType.BOOL:
            return 1
        return (1 << (self.bits - 1)) - 1 if self.is_signed else (1 << self.bits) - 1
