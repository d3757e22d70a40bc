"""Ranges of expressions whose values do not fit the arrays that hold them."""

from __future__ import annotations

import pytest

from microtir.dtype import DType
from microtir.memory.ranges import Ranges
from microtir.tir import ir
from microtir.tir.text import parse_function

_FUNCTION = """
func f(x: uint64[4], y: uint32[4], a: int32 in 0..9, z: int32[4]):
  let value: {dtype} = {text}
  z[0] = 0
"""


def range_of(dtype: str, text: str) -> tuple[int, int]:
    """The range of an expression over the parameters."""
    function = parse_function(_FUNCTION.format(dtype=dtype, text=text))
    assert isinstance(function.body, ir.Let)
    low, high = Ranges({}).of(function.body.value)
    return int(low), int(high)


@pytest.mark.parametrize(
    ("dtype", "text", "low", "high"),
    [
        ("uint32", "cast(uint32, x[0] & uint64(4294967295))", 0, (1 << 32) - 1),
        ("bool", "x[0] <= uint64(4294967295)", 0, 1),
        ("int32", "select(x[0] > uint64(3), a, a + 5)", 0, 14),
        ("uint32", "y[0] * y[1]", 0, (1 << 32) - 1),
        ("uint32", "y[0] * uint32(4)", 0, (1 << 32) - 1),
        ("int32", "a * a", 0, 81),
    ],
)
def test_ranges_of_wide_values(dtype: str, text: str, low: int, high: int) -> None:
    """Values of 64 bits may be any; what is made of them in 32 bits is what its type holds."""
    assert range_of(dtype, text) == (low, high)


def test_a_literal_of_64_bits() -> None:
    """One that no array of int64 holds is no error."""
    low, high = Ranges({}).of(ir.IntImm((1 << 64) - 1, DType.UINT64))
    assert int(low) < 0 < int(high)
