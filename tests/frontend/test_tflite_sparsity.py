"""Constants that are stored in a sparse form, as the same constants in full and as LiteRT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from microtir.errors import ModelFileError
from microtir.frontend import check, from_tflite
from microtir.frontend.tflite_sparsity import FileSparsity, SparseAxis, written_out
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.operators.dense.tflite import FullyConnectedOptions
from microtir.rewrite.reference import execute
from microtir.writers.tflite import TfliteBuilder
from tests.support.litert import run_litert

Array = Any


def packed(
    data: Array, blocks: Sequence[tuple[int, int]] = (), order: Sequence[int] = (), last: int = -1
) -> tuple[Array, FileSparsity]:
    """Return the stored values of a tensor, and how they are stored.

    Args:
        data: in full.
        blocks: axes and sizes of blocks.
        order: in which axes are walked, those of blocks behind the tensor's own.
        last: the place of the axis that is sparse; those of the blocks behind it are dense.
    """
    split = data.reshape(_split(data.shape, blocks))
    places, position = {}, 0
    for axis in range(data.ndim):
        places[axis], position = position, position + 1
        for number, (blocked, _) in enumerate(blocks):
            if blocked == axis:
                places[data.ndim + number], position = position, position + 1
    order = list(order) or list(range(data.ndim + len(blocks)))
    walked = split.transpose([places[axis] for axis in order])
    at = data.ndim - 1 if last < 0 else last
    axes = [SparseAxis(extent) for extent in walked.shape]
    rows = walked.reshape(int(np.prod(walked.shape[:at])), walked.shape[at], -1)
    begins, found, values = [0], [], []
    for row in rows:
        (kept,) = np.nonzero(row.any(axis=1))
        found += kept.tolist()
        begins.append(len(found))
        values.append(row[kept].reshape(-1))
    axes[at] = SparseAxis(0, tuple(begins), tuple(found), is_dense=False)
    parts = tuple(axis for axis, _ in blocks)
    return np.concatenate(values), FileSparsity(tuple(order), parts, tuple(axes))


def _split(shape: Sequence[int], blocks: Sequence[tuple[int, int]]) -> list[int]:
    sizes: list[int] = []
    for axis, extent in enumerate(shape):
        inner = [size for blocked, size in blocks if blocked == axis]
        sizes += [extent // int(np.prod(inner)), *inner]
    return sizes


def sparse(shape: tuple[int, int], dtype: Any, block: int, seed: int) -> Array:
    """Return weights of which three of four are zero, or three of four blocks of a row."""
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 40, shape) if dtype == np.int8 else rng.normal(0, 1, shape)
    kept = np.repeat(rng.random((shape[0], shape[1] // block)) < 0.25, block, axis=1)
    return np.clip(np.where(kept, values, 0), -127, 127).astype(dtype)


def model(weights: Array, block: int, *, is_full: bool, has_densify: bool) -> bytes:
    """Return a fully connected layer of such weights; float16 ones are dequantised, too."""
    builder = TfliteBuilder()
    is_int8 = weights.dtype == np.int8
    scales = ([0.5], [0.02], [1.5]) if is_int8 else (None,) * 3
    dtype = np.int8 if is_int8 else np.float32
    x = builder.tensor("x", (2, weights.shape[1]), dtype, None, scales[0])
    if is_full:
        held = builder.tensor("w", weights.shape, weights.dtype, weights, scales[1])
    else:
        values, sparsity = packed(weights, [(1, block)] if block > 1 else [])
        held = builder.tensor(
            "w", weights.shape, weights.dtype, values, scales[1], sparsity=sparsity
        )
        if has_densify:
            dense = builder.tensor("d", weights.shape, weights.dtype, None, scales[1])
            builder.operator(BuiltinOperator.DENSIFY, [held], [dense])
            held = dense
    if weights.dtype == np.float16:
        wide = builder.tensor("f", weights.shape, np.float32)
        builder.operator(BuiltinOperator.DEQUANTIZE, [held], [wide])
        held = wide
    y = builder.tensor("y", (2, weights.shape[0]), dtype, None, scales[2])
    builder.operator(BuiltinOperator.FULLY_CONNECTED, [x, held, -1], [y], FullyConnectedOptions())
    return builder.build([x], [y])


def result(data: bytes, x: Array) -> Array:
    """Return what a model computes."""
    graph = from_tflite(data).graph
    assert graph is not None
    (y,) = execute(graph, {"x": x}).values()
    return y


@pytest.mark.tools
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
@pytest.mark.parametrize("block", [1, 4, 16])
@pytest.mark.parametrize("has_densify", [False, True])
@pytest.mark.parametrize("seed", [3, 16])  # the second makes blocks of 16 all of which are zero
def test_layers_of_sparse_weights(dtype: Any, block: int, has_densify: bool, seed: int) -> None:
    """They are those of the same weights in full, and LiteRT's where that has a kernel."""
    weights = sparse((8, 32), dtype, block, seed)
    rng = np.random.default_rng(7)
    is_int8 = dtype == np.int8
    x = rng.integers(-128, 127, (2, 32), np.int8) if is_int8 else rng.normal(0, 1, (2, 32))
    x = x.astype(np.int8 if is_int8 else np.float32)
    data = model(weights, block, is_full=False, has_densify=has_densify)
    got = result(data, x)
    np.testing.assert_array_equal(
        got, result(model(weights, block, is_full=True, has_densify=False), x)
    )
    if weights.any() and (has_densify or dtype == np.float32):
        (want,) = run_litert(data, x)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1 if is_int8 else 1e-5)


@pytest.mark.parametrize(
    ("shape", "blocks", "order", "last"),
    [
        ((4, 8), [], [], -1),
        ((4, 8), [], [1, 0], -1),
        ((4, 8), [(0, 2), (1, 4)], [], -1),
        ((4, 8), [(0, 2), (1, 4)], [0, 1, 3, 2], 1),
        ((4, 8), [], [], 0),
        ((2, 3, 5, 8), [(3, 4)], [], -1),
        ((2, 3, 5, 8), [], [0, 2, 1, 3], 2),
    ],
)
def test_every_order_of_axes(
    shape: tuple[int, ...], blocks: list[tuple[int, int]], order: list[int], last: int
) -> None:
    """Axes in any order, blocks in any, and the sparse axis anywhere."""
    rng = np.random.default_rng(1)
    data = np.where(rng.random(shape) < 0.2, rng.integers(1, 100, shape), 0).astype(np.int8)
    values, sparsity = packed(data, blocks, order, last)
    found = written_out(sparsity, shape, values)
    assert found is not None
    np.testing.assert_array_equal(found, data)


DATA = sparse((4, 8), np.float32, 1, 0)
VALUES, SPARSITY = packed(DATA)
ROWS, COLUMNS = SPARSITY.axes


@pytest.mark.parametrize(
    "damaged",
    [
        replace(SPARSITY, order=(0, 0)),
        replace(SPARSITY, order=(0, 1, 2)),
        replace(SPARSITY, blocked=(7,), order=(0, 1, 2), axes=(ROWS, COLUMNS, SparseAxis(1))),
        replace(SPARSITY, axes=(ROWS,)),
        replace(SPARSITY, axes=(SparseAxis(1 << 30), COLUMNS)),
        replace(SPARSITY, axes=(SparseAxis(-4), COLUMNS)),
        replace(SPARSITY, axes=(ROWS, replace(COLUMNS, begins=(0, 1 << 30)))),
        replace(SPARSITY, axes=(ROWS, replace(COLUMNS, begins=COLUMNS.begins[::-1]))),
        replace(SPARSITY, axes=(ROWS, replace(COLUMNS, begins=()))),
        replace(SPARSITY, axes=(ROWS, replace(COLUMNS, places=COLUMNS.places[1:]))),
        replace(SPARSITY, axes=(ROWS, replace(COLUMNS, places=(8,) * len(COLUMNS.places)))),
        replace(SPARSITY, axes=(ROWS, replace(COLUMNS, places=(-1,) * len(COLUMNS.places)))),
        replace(SPARSITY, axes=(ROWS, SparseAxis(8))),
        replace(SPARSITY, axes=(SparseAxis(2),) * 20, order=tuple(range(20))),
    ],
)
def test_places_that_are_none(damaged: FileSparsity) -> None:
    """A form that contradicts itself, its values or its shape is damage."""
    builder = TfliteBuilder()
    x = builder.tensor("x", (1, 8), np.float32)
    w = builder.tensor("w", DATA.shape, np.float32, VALUES, sparsity=damaged)
    y = builder.tensor("y", (1, 4), np.float32)
    builder.operator(BuiltinOperator.FULLY_CONNECTED, [x, w, -1], [y], FullyConnectedOptions())
    (problem,) = check(builder.build([x], [y]))
    assert isinstance(problem, ModelFileError)
    assert "sparse" in problem.what
