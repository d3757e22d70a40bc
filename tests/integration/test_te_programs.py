"""Programs written in tensor expressions run as C through the same functions as models."""

from __future__ import annotations

import numpy as np
import pytest

import microtir
from microtir import te
from microtir.dtype import DType
from microtir.errors import RunError

F32 = DType.FLOAT32


def test_elementwise_with_a_runtime_length() -> None:
    """Computes max(x, 0) * 3 for the first n elements; n is checked against its declared range."""
    n = te.var("n", low=1, high=64)
    x = te.placeholder((n,), F32, "x")
    y = te.compute((n,), lambda i: te.maximum(x[i], 0.0) * 3.0, "y", axes=("i",))
    artifact = microtir.build(te.create_schedule(y), name="clip", args=[x, y, n])
    program = microtir.host.load(artifact)
    data, result = np.linspace(-1, 1, 10, dtype=np.float32), np.zeros(10, np.float32)
    program["clip"](data, result, 10)
    np.testing.assert_array_equal(result, np.maximum(data, 0) * np.float32(3))
    with pytest.raises(RunError, match="an integer argument is out of range"):
        program["clip"](np.zeros(65, np.float32), np.zeros(65, np.float32), 65)


def test_matmul_with_a_schedule() -> None:
    """A split, reordered and unrolled integer product equals numpy's."""
    a = te.placeholder((6, 10), DType.INT8, "a")
    b = te.placeholder((10, 8), DType.INT8, "b")

    def element(i: te.Expr, j: te.Expr) -> te.Expr:
        k = te.reduce_axis(0, 10, "k")
        return te.sum(te.cast(DType.INT32, a[i, k]) * te.cast(DType.INT32, b[k, j]), k)

    c = te.compute((6, 8), element, "c", axes=("i", "j"))
    schedule = te.create_schedule(c)
    outer, inner = schedule.split(schedule.loop(c, "j"), 4)
    schedule.reorder(outer, schedule.loop(c, "i"))
    schedule.unroll(inner)
    program = microtir.host.load(microtir.build(schedule, name="matmul"))
    rng = np.random.default_rng(0)
    left = rng.integers(-128, 128, (6, 10)).astype(np.int8)
    right = rng.integers(-128, 128, (10, 8)).astype(np.int8)
    result = np.zeros((6, 8), np.int32)
    program["matmul"](left, right, result)
    np.testing.assert_array_equal(result, left.astype(np.int32) @ right.astype(np.int32))


def test_stencil_in_two_stages() -> None:
    """A blur along rows feeds one along columns, computed where it is needed."""
    x = te.placeholder((8, 9), F32, "x")
    rows = te.compute(
        (8, 7), lambda i, j: x[i, j] + x[i, j + 1] + x[i, j + 2], "rows", axes=("i", "j")
    )
    y = te.compute(
        (6, 7), lambda i, j: rows[i, j] + rows[i + 1, j] + rows[i + 2, j], "y", axes=("i", "j")
    )
    schedule = te.create_schedule(y)
    schedule.compute_at(rows, schedule.loop(y, "i"))
    program = microtir.host.load(microtir.build(schedule, name="blur"), sanitize=True)
    data = np.random.default_rng(1).standard_normal((8, 9)).astype(np.float32)
    result = np.zeros((6, 7), np.float32)
    program["blur"](data, result)
    partial = data[:, :-2] + data[:, 1:-1] + data[:, 2:]
    np.testing.assert_allclose(result, partial[:-2] + partial[1:-1] + partial[2:], rtol=1e-6)
