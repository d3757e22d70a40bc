"""Weights of 4 bits: unpacked while a file is read."""

from __future__ import annotations

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.errors import MicrotirError
from microtir.frontend import from_tflite
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.operators.dense.tflite import FullyConnectedOptions
from microtir.writers.tflite import TfliteBuilder

DENSE = BuiltinOperator.FULLY_CONNECTED


def dense(values: list[list[int]], stored: list[int] | None = None) -> bytes:
    """A fully connected layer with such weights, or with such bytes in the place of theirs."""
    builder = TfliteBuilder()
    weights = np.array(values, np.int8)
    x = builder.tensor("x", (1, weights.shape[1]), np.int8, None, [0.5], [3])
    w = builder.tensor("w", weights.shape, "int4", weights, [0.25])
    y = builder.tensor("y", (1, weights.shape[0]), np.int8, None, [0.5], [0])
    builder.operator(DENSE, [x, w], [y], FullyConnectedOptions())
    model = builder.build([x], [y])
    return model if stored is None else model.replace(packed(weights), bytes(stored))


def packed(weights: np.ndarray[tuple[int, ...], np.dtype[np.int8]]) -> bytes:
    """The bytes of weights, written down once more beside the writer of models."""
    flat = [int(value) % 16 for value in weights.reshape(-1)] + [0]
    return bytes(flat[i] + 16 * flat[i + 1] for i in range(0, weights.size, 2))


def test_low_half_comes_first_and_rows_are_not_padded() -> None:
    """Two rows of three values lie in three bytes, with their signs."""
    values = [[-8, 7, 1], [-1, 0, 5]]
    assert packed(np.array(values, np.int8)) == b"\x78\xf1\x50"
    graph = from_tflite(dense(values)).graph
    assert graph is not None
    weights = graph.nodes[0].inputs[1]
    assert weights.dtype is DType.INT8 and weights.data is not None
    assert weights.data.tolist() == values


def test_last_half_of_an_odd_number_means_nothing() -> None:
    """Whatever a converter left there."""
    graph = from_tflite(dense([[1, 2, 3]], [0x21, 0xF3])).graph
    assert graph is not None
    data = graph.nodes[0].inputs[1].data
    assert data is not None and data.tolist() == [[1, 2, 3]]


def test_too_many_bytes_are_damage() -> None:
    """Data of one byte for each value is not of this type."""
    builder = TfliteBuilder()
    x = builder.tensor("x", (1, 4), np.int8, None, [0.5], [3])
    w = builder.tensor("w", (2, 4), "int4", np.zeros((2, 4), np.int8), [0.25])
    y = builder.tensor("y", (1, 2), np.int8, None, [0.5], [0])
    builder.operator(DENSE, [x, w], [y], FullyConnectedOptions())
    data = bytearray(builder.build([x], [y]))
    shape = np.array([2, 4], np.int32).tobytes()
    at = data.index(shape)
    data[at : at + 8] = np.array([2, 2], np.int32).tobytes()
    with pytest.raises(MicrotirError, match=r"4 bytes of data for int4 of shape \(2, 2\)"):
        from_tflite(bytes(data))


def test_activations_of_4_bits_are_refused() -> None:
    """Only constants may have this type."""
    builder = TfliteBuilder()
    x, y = (builder.tensor(name, (1, 4), "int4", None, [0.5], [0]) for name in "xy")
    builder.operator(BuiltinOperator.RELU, [x], [y])
    with pytest.raises(MicrotirError, match="its type is INT4"):
        from_tflite(builder.build([x], [y]))
