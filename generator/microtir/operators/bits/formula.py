"""Compute operators on bits."""

from __future__ import annotations

from microtir import te
from microtir.dtype import DType


def bit_cast(value: te.Expr) -> te.Expr:
    """Return the same bits as another type."""
    return te.bits_of_float(value) if value.dtype.is_float else te.float_of_bits(value)


def ordered_bits(value: te.Expr) -> te.Expr:
    """Return bits that are compared as integers: below 0 they are turned around."""
    bits, most = te.bind("bits", te.bits_of_float(value)), DType.INT32.max
    turned = bits ^ ((bits >> 31) & most)
    return te.select((bits & most) <= _INFINITY, turned, most)


_INFINITY = 0x7F800000
"""Bits of infinity as an integer; those of a NaN make a larger one."""
