"""Indices that a model computes: what they mean where they lie outside of their axes."""

from __future__ import annotations

import numpy as np
import pytest

import microtir
from microtir import host
from microtir.graph.ir import Array
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.operators.indexing.tflite import GatherOptions
from microtir.rewrite.reference import execute
from microtir.writers.tflite import TfliteBuilder

Code = BuiltinOperator
LOWEST, HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def model() -> bytes:
    """One operator of each kind on the same data; indices are inputs, of 32 and of 64 bits."""
    b = TfliteBuilder()
    x, few, many = (b.tensor("x", (4, 3), np.float32), b.tensor("few", (2,), np.int32),
                    b.tensor("many", (2,), np.int64))  # fmt: skip
    pairs = b.tensor("pairs", (1, 2), np.int32)

    def result(name: str, *shape: int) -> int:
        return b.tensor(name, shape, np.float32)

    def constant(name: str, *values: int) -> int:
        return b.tensor(name, (len(values),), np.int32, np.array(values))

    outputs = [result("gather", 2, 3), result("gather_nd", 1), result("scatter_nd", 4, 3),
               result("lookup", 2, 3), result("slice", 2, 2), result("update", 4, 3)]  # fmt: skip
    b.operator(Code.GATHER, [x, many], outputs[:1], GatherOptions())
    b.operator(Code.GATHER_ND, [x, pairs], outputs[1:2])
    b.operator(Code.SCATTER_ND, [pairs, outputs[1], constant("shape", 4, 3)], outputs[2:3])
    b.operator(Code.EMBEDDING_LOOKUP, [few, x], outputs[3:4])
    size = b.tensor("size", (2,), np.int64, np.array([2, 2]))
    b.operator(Code.SLICE, [x, many, size], outputs[4:5])
    b.operator(Code.DYNAMIC_UPDATE_SLICE, [x, outputs[4], few], outputs[5:])
    return b.build([x, few, many, pairs], outputs)


X = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.mark.parametrize("low", [True, False], ids=["below", "above"])
def test_the_nearest_index_counts(low: bool) -> None:
    """An index outside is the nearest inside; a scattered tensor takes nothing at such a place."""
    few, many = ((-7, -(2**31)), (LOWEST, -1)) if low else ((7, 2**31 - 1), (HIGHEST, 4))
    inputs: dict[str, Array] = {
        "x": X,
        "few": np.array(few, np.int32),
        "many": np.array(many, np.int64),
        "pairs": np.array([few], np.int32),
    }
    row, part = (X[0], X[:2, :2]) if low else (X[3], X[2:, 1:])
    updated = X.copy()
    updated[(slice(2), slice(2)) if low else (slice(2, 4), slice(1, 3))] = part
    expected = {
        "gather": np.stack([row, row]),
        "gather_nd": row[:1] if low else row[-1:],
        "scatter_nd": np.zeros((4, 3), np.float32),
        "lookup": np.stack([row, row]),
        "slice": part,
        "update": updated,
    }
    module = microtir.frontend.from_tflite(model())
    assert module.graph is not None
    for name, values in execute(module.graph, inputs).items():
        assert np.array_equal(values, expected[name]), name
    for name, values in host.load(microtir.build(module)).run(inputs).items():
        assert np.array_equal(values, expected[name]), name
