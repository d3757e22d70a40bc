"""Says which C types and literals TIR's scalar types have.

C99 promotes every 8- and 16-bit operand to `int`, which has 16 bits on AVR.  A decimal literal
takes the first of int, long and long long that holds it on every target, so a literal as such
never needs a suffix; what needs care is arithmetic between two literals, which `expressions`
handles.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from microtir.dtype import DType
from microtir.support.float_text import float32_text

C_TYPES: Mapping[DType, str] = MappingProxyType({
    # <stdbool.h> is not among the headers that generated code uses.
    DType.BOOL: "uint8_t",
    DType.INT8: "int8_t",
    DType.UINT8: "uint8_t",
    DType.INT16: "int16_t",
    DType.UINT16: "uint16_t",
    DType.INT32: "int32_t",
    DType.UINT32: "uint32_t",
    DType.INT64: "int64_t",
    DType.UINT64: "uint64_t",
    DType.FLOAT32: "float",
    DType.FLOAT64: "double",
})  # fmt: skip


_ELEMENTS: Mapping[DType, str] = MappingProxyType({
    DType.BOOL: "BOOL",
    **dict.fromkeys((DType.INT8, DType.INT16, DType.INT32, DType.INT64), "SIGNED"),
    **dict.fromkeys((DType.UINT8, DType.UINT16, DType.UINT32, DType.UINT64), "UNSIGNED"),
    **dict.fromkeys((DType.FLOAT32, DType.FLOAT64), "FLOAT"),
})  # fmt: skip


def runtime_dtype(dtype: DType) -> str:
    """Return the initialiser of the runtime's `struct microtir_dtype`."""
    return f"{{MICROTIR_ELEMENT_{_ELEMENTS[dtype]}, {dtype.bits}}}"


def is_promoted(dtype: DType) -> bool:
    """Return whether C computes with `int` where TIR computes with this type."""
    return not dtype.is_float and dtype.bits < 32


def integer_literal(value: int, dtype: DType) -> str:
    """Return the C text of an integer of a type; may begin with a minus sign.

    The lowest value has no literal in C: minus applies to a number that does not fit.
    """
    if not is_promoted(dtype) and dtype.is_signed and value == dtype.min:
        return f"INT{dtype.bits}_MIN"
    if dtype is DType.UINT32:
        return f"{value}u" if value <= DType.UINT16.max else f"UINT32_C({value})"
    if dtype is DType.UINT64:
        return f"{value}u" if value <= DType.UINT16.max else f"UINT64_C({value})"
    if dtype is DType.INT64 and not DType.INT32.min <= value <= DType.INT32.max:
        return f"INT64_C({value})" if value >= 0 else f"-INT64_C({-value})"
    return str(value)


def wide_literal(value: int, dtype: DType) -> str:
    """Return the C text of a non-negative integer that has `dtype` as its C type, not `int`."""
    assert value >= 0
    prefix = "UINT" if not dtype.is_signed else "INT"
    return f"{prefix}{dtype.bits}_C({value})"


def float_literal(value: float, dtype: DType) -> str:
    """Return shortest decimal text that reads back as the same value, with the type's suffix."""
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    if dtype is DType.FLOAT64:
        return repr(float(value))
    return f"{float32_text(value)}f"


def needs_math_header(value: float) -> bool:
    """Return whether the literal of `value` is a macro of <math.h>."""
    return not math.isfinite(value)
