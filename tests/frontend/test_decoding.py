"""Constants that a file stores compressed are unpacked as tflite-micro does."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.frontend import from_tflite
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.rewrite.reference import execute
from microtir.writers.tflite import TfliteBuilder
from tests.frontend.models import refusal
from tests.support.tflm import run_tflm

Array = npt.NDArray[Any]
LUT, HUFFMAN, PRUNE = 0, 1, 2
X = np.array([[1.5, -2.0]], np.float32)


def header(form: int, parameter: int = 0, stride: int = 0, version: int = 1) -> bytes:
    """Sixteen bytes in front of the tables."""
    return bytes([form, version, 0, 0, version, parameter, stride, *([0] * 9)])


def bits_of(text: str, multiple: int = 8) -> bytes:
    """Bits, the most significant of each byte first, filled up with zeros."""
    text += "0" * (-len(text) % multiple)
    return bytes(int(text[at : at + 8], 2) for at in range(0, len(text), 8))


def model(
    parts: Sequence[tuple[bytes, bytes, Array]],
    scales: Sequence[float] | None = None,
    zero_points: Sequence[int] | None = None,
    axis: int | None = None,
) -> bytes:
    """A model that gives what it decodes, beside a copy of its input."""
    builder, inputs, outputs = TfliteBuilder(), [], []
    x, y = builder.tensor("x", X.shape, X.dtype), builder.tensor("y", X.shape, X.dtype)
    builder.operator(BuiltinOperator.RELU, [x], [y])
    for number, (bits, tables, result) in enumerate(parts):
        for name, data in (("bits", bits), ("tables", tables)):
            stored = np.frombuffer(data, np.uint8)
            inputs.append(builder.tensor(f"{name}{number}", stored.shape, np.uint8, stored))
        outputs.append(
            builder.tensor(
                f"value{number}",
                result.shape,
                result.dtype,
                None,
                scales,
                zero_points,
                axis if scales else None,
            )
        )
    builder.custom_operator("TFLM_DECODE", inputs, outputs)
    return builder.build([x], [y, *outputs])


def check(file: bytes, results: Sequence[Array]) -> None:
    """Compare with what was packed, and with tflite-micro."""
    graph = from_tflite(file).graph
    assert graph is not None
    _, *mine = execute(graph, {graph.inputs[0].name: X}).values()
    _, *oracle = run_tflm(file, X, outputs=1 + len(results))
    for got, other, wanted in zip(mine, oracle, results, strict=True):
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(other.reshape(wanted.shape), wanted)


TYPES = [np.float32, np.int8, np.int16, np.int32, np.int64, np.bool_]


def values_of(rng: np.random.Generator, dtype: Any, count: int) -> Array:
    """Values of all of a type."""
    if dtype is np.float32:
        return rng.normal(0, 9, count).astype(dtype)
    if dtype is np.bool_:
        return rng.integers(0, 2, count).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, count, dtype, endpoint=True)


@pytest.mark.tools
@given(
    st.sampled_from(TYPES), st.integers(1, 7), st.sampled_from(["one", "first", "last"]),
    st.integers(1, 9), st.integers(1, 19), st.integers(0, 1 << 30),
)  # fmt: skip
@settings(max_examples=30, deadline=None)
def test_tables_of_values(
    dtype: Any, width: int, channels: str, rows: int, columns: int, seed: int
) -> None:
    """Every width of index, and a table for all values or for each channel of an axis."""
    rng = np.random.default_rng(seed)
    count = {"one": 1, "first": rows, "last": columns}[channels]
    axis = 1 if channels == "last" and count > 1 else 0
    used = int(rng.integers(1, (1 << width) + 1))
    stride = int(rng.integers(used, (1 << width) + 1))
    tables = values_of(rng, dtype, count * stride).reshape(count, stride)
    indices = rng.integers(0, used, (rows, columns))
    channel = np.indices((rows, columns))[axis] if count > 1 else np.zeros_like(indices)
    wanted = tables[channel, indices]
    bits = bits_of("".join(f"{index:0{width}b}" for index in indices.reshape(-1)), 64)
    scales = [0.5] * count if dtype is np.int8 or count > 1 else None
    zero_points = [0] * count if scales else None
    packed = (bits, header(LUT, width, stride) + tables.tobytes(), wanted)
    check(model([packed, packed], scales, zero_points, axis), [wanted, wanted])


@pytest.mark.tools
@given(
    st.sampled_from(TYPES), st.sampled_from(["one", "first", "last"]),
    st.integers(1, 9), st.integers(1, 19), st.integers(0, 1 << 30),
)  # fmt: skip
@settings(max_examples=20, deadline=None)
def test_bitmaps(dtype: Any, channels: str, rows: int, columns: int, seed: int) -> None:
    """A value that is left out is the zero point, of int8 that of its channel."""
    rng = np.random.default_rng(seed)
    channels = channels if dtype is np.int8 else "one"
    count = {"one": 1, "first": rows, "last": columns}[channels]
    axis = 1 if channels == "last" and count > 1 else 0
    zero_points = rng.integers(-128, 128, count) if dtype is np.int8 else np.zeros(1, int)
    kept = rng.integers(0, 2, (rows, columns)).astype(bool)
    channel = np.indices((rows, columns))[axis] if count > 1 else np.zeros((rows, columns), int)
    wanted = zero_points[channel].astype(dtype)
    table = values_of(rng, dtype, int(kept.sum()))
    wanted[kept] = table
    bits = bits_of("".join("01"[int(bit)] for bit in kept.reshape(-1)))
    scales = [0.5] * count if dtype is np.int8 else None
    zeros = zero_points.tolist() if scales else None
    check(model([(bits, header(PRUNE) + table.tobytes(), wanted)], scales, zeros, axis), [wanted])


def codewords(counts: Mapping[int, int]) -> dict[int, str]:
    """Return a prefix code for symbols by how often they come."""
    heap = [(n, symbol, {symbol: ""}) for symbol, n in sorted(counts.items())]
    heapq.heapify(heap)
    if len(heap) == 1:
        return dict.fromkeys(counts, "0")
    while len(heap) > 1:
        (n, first, left), (m, _, right) = heapq.heappop(heap), heapq.heappop(heap)
        joined = {s: "0" + c for s, c in left.items()} | {s: "1" + c for s, c in right.items()}
        heapq.heappush(heap, (n + m, first, joined))
    return heap[0][2]


def table_of(codes: Mapping[int, str], bits: int, shift: int) -> list[int]:
    """Return the tables of a prefix code, the first with an index of so many bits."""
    found, entries = 1 << shift + 4, [0] * (1 << bits)
    longer: dict[int, dict[int, str]] = {}
    for symbol, code in codes.items():
        if len(code) <= bits:
            free = bits - len(code)
            first = int(code + "0" * free, 2) if bits else 0
            for place in range(first, first + (1 << free)):
                entries[place] = found | len(code) << shift | symbol
        else:
            longer.setdefault(int(code[:bits], 2), {})[symbol] = code[bits:]
    for place, rest in longer.items():
        width = min(max(map(len, rest.values())), 3)
        entries[place] = (width - 1) << shift | len(entries) - place
        entries += table_of(rest, width, shift)
    return entries


@pytest.mark.tools
@given(
    st.sampled_from([(np.int8, False), (np.int8, True), (np.int16, True)]),
    st.integers(1, 5), st.integers(1, 40), st.integers(1, 200), st.integers(0, 1 << 30),
)  # fmt: skip
@settings(max_examples=30, deadline=None)
def test_codewords(form: tuple[Any, bool], bits: int, kinds: int, count: int, seed: int) -> None:
    """Codewords shorter and longer than the first index, by tables of 16 and of 32 bits."""
    rng = np.random.default_rng(seed)
    dtype, is_wide = form
    known = values_of(rng, dtype, kinds)
    spread = 1 / np.arange(1, kinds + 1) ** 2
    wanted = rng.choice(known, count, p=spread / spread.sum())
    unsigned = wanted.view(np.uint8 if dtype is np.int8 else np.uint16)
    symbols, counts = np.unique(unsigned, return_counts=True)
    codes = codewords(dict(zip(symbols.tolist(), counts.tolist(), strict=True)))
    table = np.array(table_of(codes, bits, 27 if is_wide else 11), "<u4" if is_wide else "<u2")
    packed = bits_of("".join(codes[symbol] for symbol in unsigned.tolist()), 32) + bytes(4)
    tables = header(HUFFMAN, (bits - 1) << 4 | is_wide) + table.tobytes()
    scales, zero_points = ([0.5], [0]) if dtype is np.int8 else (None, None)
    check(model([(packed, tables, wanted)], scales, zero_points), [wanted])


BYTES = np.zeros(8, np.int8)


@pytest.mark.parametrize(
    ("bits", "tables", "result", "text"),
    [
        (b"\0", header(LUT, 1, 2)[:9], BYTES, "its header has 9 bytes"),
        (b"\0", header(5), BYTES, "in the form 5"),
        (b"\0", header(127), BYTES, "in the form 127"),
        (b"\0", header(LUT, 1, 2, version=2) + b"ab", BYTES, "the versions 2 and 2"),
        (b"\0", header(LUT, 0, 2) + b"ab", BYTES, "indices have 0 bits"),
        (b"\0", header(LUT, 2, 2) + b"ab", BYTES, "8 bits of indices"),
        (b"\1", header(LUT, 1, 2) + b"a", BYTES, "an index names value 1 of 1"),
        (b"\1", header(LUT, 1, 2) + b"ab", BYTES.astype(np.uint8), "cannot contain uint8"),
        (b"\3", header(PRUNE), np.zeros(9, np.int8), "8 bits"),
        (b"\3", header(PRUNE) + b"a", BYTES, "1 values"),
        (b"\3", header(HUFFMAN) + b"ab", BYTES.astype(np.int32), "cannot contain int32"),
        (b"\3", header(HUFFMAN) + b"ab", BYTES.astype(np.int16), "tables of 16 bits"),
        (b"\3", header(HUFFMAN) + b"\0\x88", BYTES, "entry 1 of 1"),
        (b"\0", header(HUFFMAN) + b"\0\x90\0\x90", np.zeros(48, np.int8), "end early"),
    ],
)
def test_refusals(bits: bytes, tables: bytes, result: Array, text: str) -> None:
    """What does not fit together is damage; tflite-micro reads outside of its memory for some."""
    assert text in refusal(model([(bits, tables, result)], [0.5], [0]))


def test_what_is_computed_is_not_decoded() -> None:
    """Bits must be constants, and there are two inputs for each output."""
    builder = TfliteBuilder()
    x = builder.tensor("x", (4,), np.uint8)
    y = builder.tensor("y", (4,), np.int8, None, [0.5], [0])
    builder.custom_operator("TFLM_DECODE", [x, x], [y])
    assert "its encoded input is missing, or is not a constant" in refusal(builder.build([x], [y]))
    builder = TfliteBuilder()
    x = builder.tensor("x", (4,), np.uint8)
    y = builder.tensor("y", (4,), np.int8, None, [0.5], [0])
    builder.custom_operator("TFLM_DECODE", [x], [y])
    assert "two inputs for each output" in refusal(builder.build([x], [y]))
