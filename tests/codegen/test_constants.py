"""Weights as C arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from microtir.codegen.printer.constants import (
    ConstantArray,
    named_arrays,
    value_lines,
)
from microtir.codegen.printer.names import UniqueNames
from microtir.dtype import DType
from microtir.measure import constants_of
from microtir.tir.build import seq
from microtir.tir.ir import Buffer, IntImm, Load, PrimFunc, Scope, Store


def _lines(values: Sequence[float], dtype: DType) -> list[str]:
    return value_lines(np.array(values, dtype=dtype.value))


def _reader(name: str, *constants: Buffer) -> PrimFunc:
    """Return a function that reads the first element of each constant."""
    out = Buffer("out", (1,), constants[0].dtype)
    stores = [
        Store(out, (IntImm(0),), Load(c, tuple(IntImm(0) for _ in c.shape))) for c in constants
    ]
    return PrimFunc(name, (out,), seq(*stores))


def _arrays(*functions: PrimFunc) -> tuple[list[ConstantArray], dict[Buffer, ConstantArray]]:
    """Return the arrays of a file with these functions, and what holds each buffer."""
    named = named_arrays(constants_of(functions, 4), "m", UniqueNames())
    holders = {buffer: array for known, array in named.items() for buffer in known.buffers}
    return list(named.values()), holders


def _constant(name: str, data: npt.NDArray[np.generic], alignment: int = 1) -> Buffer:
    dtype = DType(data.dtype.name)
    return Buffer(name, data.shape, dtype, Scope.CONSTANT, data, alignment)


def test_int8_in_aligned_columns() -> None:
    """Sixteen 8-bit values stand on a line, right-aligned."""
    lines = _lines(list(range(-10, 10)), DType.INT8)
    first = "-10,  -9,  -8,  -7,  -6,  -5,  -4,  -3,  -2,  -1,   0,   1,   2,   3,   4,   5,"
    assert lines[0] == first
    assert lines[1] == "  6,   7,   8,   9,"


def test_infinities_are_macros_of_math() -> None:
    """A file with one includes the header that has it."""
    for values, needs in (([1.0, -np.inf], True), ([np.nan], True), ([1.0], False)):
        array = ConstantArray("c", DType.FLOAT32, np.array(values, np.float32), 4)
        assert array.needs_math_header == needs


def test_lowest_values_have_no_literal() -> None:
    """INT32_MIN and INT64_MIN are macros: minus applies to a number that does not fit."""
    assert _lines([DType.INT32.min, 1], DType.INT32) == ["INT32_MIN,         1,"]
    array = np.array([DType.INT64.min, 2**40, -5], dtype=np.int64)
    text = value_lines(array)
    assert " ".join(text).split() == ["INT64_MIN,", "INT64_C(1099511627776),", "-5,"]


def test_floats_read_back_exactly() -> None:
    """Shortest decimals, the sign of zero, and infinities survive the text."""
    values = [0.1, -0.0, 1e-45, 3.4028235e38, float("inf")]
    cells = " ".join(_lines(values, DType.FLOAT32)).replace(" ", "").rstrip(",").split(",")
    assert cells == ["0.1f", "-0.0f", "1e-45f", "3.4028235e+38f", "INFINITY"]
    back = [np.float32(c.rstrip("f")) for c in cells[:-1]]
    assert all(a == np.float32(b) for a, b in zip(back, values[:-1], strict=True))


def test_lines_stay_within_the_width() -> None:
    """However wide the values are, a line of them fits."""
    for dtype, values in (
        (DType.FLOAT64, [1 / 3] * 40),
        (DType.INT32, [-(2**31)] * 40),
        (DType.UINT16, [65535] * 40),
    ):
        assert all(len(line) <= 96 for line in _lines(values, dtype))


def test_equal_data_is_kept_once() -> None:
    """Two layers with the same table share one array, with the stricter alignment of the two."""
    data = np.arange(8, dtype=np.int8)
    a, b = _constant("table", data, 2), _constant("lut", data.copy().reshape(2, 4), 8)
    first = _reader("layer0_exp", a, _constant("table", data + 1))
    second, third = _reader("layer1_exp", _constant("x", data.copy())), _reader("layer2", b)
    arrays, by_buffer = _arrays(first, second, third)
    assert [x.name for x in arrays] == ["m_layer0_exp_table", "m_layer0_exp_table_2"]
    assert by_buffer[a] is arrays[0]
    assert by_buffer[b] is arrays[0]
    assert arrays[0].alignment == 8
    assert arrays[0].users == ("layer0_exp", "layer1_exp", "layer2")


def test_zero_and_minus_zero_are_different_data() -> None:
    """Constants are compared by bytes: 0.0 equals -0.0 and is another constant."""
    plus = _constant("plus", np.zeros(2, np.float32))
    minus = _constant("minus", -np.zeros(2, np.float32))
    function = _reader("layer0", plus, minus)
    arrays, _ = _arrays(function)
    assert [x.name for x in arrays] == ["m_layer0_plus", "m_layer0_minus"]
