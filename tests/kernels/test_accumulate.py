"""Reductions that are fed row by row: accumulators in between, then the output."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest

from microtir.config import Target
from microtir.dtype import DType
from microtir.graph.ir import Array, Node
from microtir.kernels import emit, emit_finish
from microtir.kernels.portable.accumulate import Accumulate
from microtir.kernels.table import kernels_of, refusals_of
from microtir.operators.reduction.definition import (
    Mean,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    Reduction,
    Sum,
)
from microtir.plan.ir import Layout, LayoutKind, PlannedOperator, Refusal
from microtir.rewrite.reference import evaluate
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.function import LayerName
from microtir.tir.interpreter import Interpreter
from tests.support.graphs import node, quant, tensor

F32, I8, I16, I32, BOOL = (DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32, DType.BOOL)
IMAGE = (1, 9, 5, 3)
RING = 2

CASES = [
    (Mean((1, 2), keep_dims=True), F32, IMAGE, 3 * 4),
    (Mean((0, 1, 2)), I8, IMAGE, 3 * 4),
    (Mean((1,)), I16, IMAGE, 15 * 4),
    (Sum((1, 2)), F32, IMAGE, 3 * 4),
    (Sum((1,), keep_dims=True), I8, IMAGE, 15 * 4),
    (Sum((1,)), I16, (1, 11, 4), 4 * 4),
    (ReduceMax((1, 2)), I8, IMAGE, 3),
    (ReduceMax((1,)), F32, (1, 11, 4), 4 * 4),
    (ReduceMin((1, 2), keep_dims=True), F32, IMAGE, 3 * 4),
    (ReduceMin((0, 1)), I32, (1, 7, 4, 1), 4 * 4),
    (ReduceProd((1, 2)), I32, IMAGE, 3 * 4),
    (ReduceAll((1, 2)), BOOL, IMAGE, 3),
    (ReduceAny((1,)), BOOL, IMAGE, 15),
]


def reducing(op: Reduction, dtype: DType, shape: tuple[int, ...]) -> Node:
    """A reduction of a tensor of any type."""
    q = quant(0.5) if dtype in (I8, I16) else None
    result = tuple(
        1 if axis in op.axes else extent
        for axis, extent in enumerate(shape)
        if op.keep_dims or axis not in op.axes
    )
    return node(op, [tensor("x", shape, dtype, q)], tensor("y", result, dtype, q))


def values(dtype: DType, shape: tuple[int, ...]) -> Array:
    """Random data; floats are such that their sums are exact in any order."""
    rng = np.random.default_rng(5)
    if dtype.is_float:
        return (rng.integers(-99, 99, shape) / 8).astype(np.float32)
    low, high = (0, 1) if dtype is BOOL else (dtype.min, dtype.max)
    return np.asarray(rng.integers(low, high, shape, dtype=np.int64, endpoint=True), dtype.value)


@pytest.mark.parametrize(("op", "dtype", "shape", "size"), CASES, ids=str)
def test_rows_in_parts_give_what_the_whole_gives(
    op: Reduction, dtype: DType, shape: tuple[int, ...], size: int
) -> None:
    """Rows come through a ring of two, one or two at a time; every access is proven."""
    reduced = reducing(op, dtype, shape)
    x, y = reduced.inputs[0], reduced.output
    (kernel,) = (k for k in kernels_of(reduced) if k.name == "accumulate")
    operator = PlannedOperator(reduced, kernel.candidate(reduced))
    layouts = MappingProxyType(
        {x: Layout(LayoutKind.NHWC, RING), y: Layout(LayoutKind.NHWC, y.type.rows)}
    )
    add = emit(operator, layouts, LayerName("add"))
    finish = emit_finish(operator, layouts, LayerName("finish"))
    for function in (add, finish):
        prove_accesses(function)
    assert Accumulate().accumulator_bytes(reduced) == size
    data, machine = values(dtype, shape), Interpreter([add, finish])
    rows = data.reshape(x.type.rows, -1)
    sums = np.ones(size, np.uint8).view(add.params[1].dtype.value)  # begun anew at row 0
    ring = np.zeros((RING, x.type.row_elements), dtype.value)
    first = 0
    while first < len(rows):
        stop = min(first + (first % 3 == 0) + 1, len(rows))
        for row in range(first, stop):
            ring[row % RING] = rows[row]
        machine.run("add", [ring, sums, first, stop])
        first = stop
    got = np.zeros(y.shape, dtype.value)
    machine.run("finish", [sums, got])
    np.testing.assert_array_equal(got, evaluate(reduced, [data])[0])


@pytest.mark.parametrize(
    ("op", "dtype", "shape", "reason"),
    [
        (ReduceMax((1, 2)), F32, (2, 9, 5, 3), Refusal.IMAGES),
        (ReduceMax((2,)), F32, IMAGE, Refusal.WINDOWS),  # no row waits for another
        (ReduceMax((1, 3)), F32, IMAGE, Refusal.WINDOWS),
        (ReduceMax((1, 3)), F32, (1, 9, 5, 1), Refusal.WINDOWS),  # columns become channels
        (Sum((1,)), DType.INT64, IMAGE, Refusal.SUMS),
    ],
    ids=str,
)
def test_what_is_not_fed_by_rows(
    op: Reduction, dtype: DType, shape: tuple[int, ...], reason: Refusal
) -> None:
    """Several images, other axes, and sums that leave 32 bits."""
    refused = dict(refusals_of(reducing(op, dtype, shape), Target("c")))
    assert refused["accumulate"] is reason
