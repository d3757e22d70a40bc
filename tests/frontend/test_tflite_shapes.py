"""Shapes by a free batch: what TFLite computes for each run is known with a batch of 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from microtir import frontend
from microtir.graph.ir import Array, Graph
from microtir.operators.common.tflite_schema import BuiltinOperator, Options
from microtir.operators.dense.tflite import FullyConnectedOptions
from microtir.operators.indexing.tflite import GatherOptions
from microtir.operators.movement.tflite import (
    ConcatenationOptions,
    PackOptions,
    StridedSliceOptions,
)
from microtir.operators.reduction.tflite import ReducerOptions
from microtir.rewrite.reference import execute
from microtir.writers.tflite import TfliteBuilder
from tests.frontend.models import read

Code = BuiltinOperator
RNG = np.random.default_rng(4)


class FreeBatch(TfliteBuilder):
    """A model of floats whose batch is free; extents of -1 are stored as 1."""

    def free(self, name: str, *signature: int) -> int:
        """A tensor with extents that depend on the batch."""
        shape = [abs(extent) for extent in signature]
        return self.tensor(name, shape, np.float32, shape_signature=signature)

    def constant(self, name: str, values: object, dtype: type = np.int32) -> int:
        """A constant."""
        data: Array = np.asarray(values, dtype)
        return self.tensor(name, data.shape, dtype, data)

    def shape(self, name: str, x: int, rank: int) -> int:
        """The shape of a tensor."""
        return self.ints(Code.SHAPE, name, [x], (rank,))

    def ints(
        self, code: Code, name: str, inputs: Sequence[int], shape: tuple[int, ...],
        options: Options | None = None,
    ) -> int:  # fmt: skip
        """Integers that an operator computes."""
        y = self.tensor(name, shape, np.int32)
        self.operator(code, inputs, [y], options)
        return y

    def picked(self, name: str, shape: int, *axes: int) -> int:
        """The product of some extents, as the converter writes it for a contraction."""
        extents = self.ints(
            Code.GATHER, f"{name}/gather", [shape, self.constant(f"{name}/axes", axes)],
            (len(axes),),
        )  # fmt: skip
        first = self.constant(f"{name}/zero", [0])
        return self.ints(Code.REDUCE_PROD, name, [extents, first], (), ReducerOptions())


def dense_on_a_sequence() -> tuple[bytes, Array, Array]:
    """What converters make of Dense(3) on (batch, 8, 5): model, weights, bias."""
    b = FreeBatch()
    weights, bias = RNG.standard_normal((3, 5)), RNG.standard_normal(3)
    x = b.free("x", -1, 8, 5)
    shape = b.shape("shape", x, 3)
    rows, depth = b.picked("rows", shape, 0, 1), b.picked("depth", shape, 2)
    flat_shape = b.ints(Code.PACK, "flat_shape", [rows, depth], (2,), PackOptions(2))
    first = b.ints(
        Code.STRIDED_SLICE, "batch",
        [shape, *(b.constant(n, [v]) for n, v in (("begin", 0), ("end", 1), ("stride", 1)))],
        (), StridedSliceOptions(shrink_axis_mask=1),
    )  # fmt: skip
    sizes = [b.constant("eight", 8), b.constant("three", 3)]
    whole_shape = b.ints(Code.PACK, "whole_shape", [first, *sizes], (3,), PackOptions(3))
    flat, product = b.free("flat", -1, -1), b.free("product", -1, 3)
    whole, y = b.free("whole", -1, 8, 3), b.free("y", -1, 8, 3)
    b.operator(Code.RESHAPE, [x, flat_shape], [flat])
    b.operator(Code.FULLY_CONNECTED, [flat, b.constant("weights", weights, np.float32)], [product])
    b.operator(Code.RESHAPE, [product, whole_shape], [whole])
    b.operator(Code.ADD, [whole, b.constant("bias", bias, np.float32)], [y])
    return b.build([x], [y]), weights, bias


def shapes(graph: Graph) -> dict[str, tuple[int, ...]]:
    """The shapes of what is computed, by name."""
    return {t.name: t.shape for node in graph.nodes for t in node.outputs}


def test_dense_layer_on_a_sequence_with_a_free_batch() -> None:
    """It was refused as damaged: (1, 1) is stored for rows that TFLite computes for each run."""
    data, weights, bias = dense_on_a_sequence()
    graph = read(data)
    assert shapes(graph) == {
        "flat": (8, 5), "product": (8, 3), "whole": (1, 8, 3), "y": (1, 8, 3),
    }  # fmt: skip
    x = RNG.standard_normal((1, 8, 5)).astype(np.float32)
    got = execute(graph, {"x": x})["y"]
    np.testing.assert_allclose(got, x @ weights.T + bias, rtol=1e-5, atol=1e-5)


def test_shapes_follow_through_every_operator() -> None:
    """Extents stored as 1 are completed behind any operator, not only behind a RESHAPE."""
    b = FreeBatch()
    x = b.free("x", -1, 4, 6)
    half = b.ints(
        Code.FLOOR_DIV, "half", [b.picked("all", b.shape("shape", x, 3), 0, 1, 2),
                                 b.constant("two", 2)], (),
    )  # fmt: skip
    target = b.ints(
        Code.CONCATENATION, "target",
        [b.ints(Code.EXPAND_DIMS, "rows", [half, b.constant("axis", 0)], (1,)),
         b.constant("rest", [2])], (2,), ConcatenationOptions(0),
    )  # fmt: skip
    pairs, dense = b.free("pairs", -1, 2), b.free("dense", -1, 3)
    mean, twice = b.free("mean", -1), b.free("twice", -1)
    b.operator(Code.RESHAPE, [x, target], [pairs])
    keep = FullyConnectedOptions(keep_num_dims=True)
    weights = b.constant("weights", RNG.standard_normal((3, 2)), np.float32)
    b.operator(Code.FULLY_CONNECTED, [pairs, weights], [dense], keep)
    b.operator(Code.MEAN, [dense, b.constant("last", [1])], [mean])
    b.operator(Code.CONCATENATION, [mean, mean], [twice], ConcatenationOptions(0))
    assert shapes(read(b.build([x], [twice]))) == {
        "pairs": (12, 2), "dense": (12, 3), "mean": (12,), "twice": (24,),
    }  # fmt: skip


def test_one_extent_that_nothing_computes_follows_from_the_elements() -> None:
    """A shape by operators that are not read is completed where one extent is unknown."""
    b = FreeBatch()
    x, y = b.free("x", -1, 4, 6), b.free("y", -1, 8)
    unknown = b.ints(Code.GATHER, "unknown", [b.shape("shape", x, 3), b.constant("axis", [0, 1])],
                     (2,), GatherOptions(batch_dims=1))  # fmt: skip
    b.operator(Code.RESHAPE, [x, unknown], [y])
    assert shapes(read(b.build([x], [y]))) == {"y": (3, 8)}


def test_a_shape_that_is_not_known_is_not_damage() -> None:
    """Two unknown extents are refused by their signature: the file is whole."""
    b = FreeBatch()
    x, y = b.free("x", -1, 4, 6), b.free("y", -1, -1)
    unknown = b.ints(Code.GATHER, "unknown", [b.shape("shape", x, 3), b.constant("axis", [0, 1])],
                     (2,), GatherOptions(batch_dims=1))  # fmt: skip
    b.operator(Code.RESHAPE, [x, unknown], [y])
    (problem,) = frontend.check(b.build([x], [y]))
    assert "operator 2 RESHAPE ('y'): the model computes the shape (-1, -1) of 'y'" in str(problem)
    assert "fix:      convert the model with fixed input shapes" in str(problem)


@pytest.mark.parametrize("wrong", [[7], [3]])
def test_shape_operators_that_make_no_sense_are_left_alone(wrong: list[int]) -> None:
    """An axis outside a shape makes nothing known, and no traceback."""
    b = FreeBatch()
    x, y = b.free("x", -1, 4, 6), b.free("y", -1, 24)
    axis = b.constant("axis", wrong)
    rows = b.ints(Code.GATHER, "rows", [b.shape("shape", x, 3), axis], (1,))
    b.operator(Code.RESHAPE, [x, rows], [y])
    assert shapes(read(b.build([x], [y]))) == {"y": (1, 24)}


def test_a_shape_may_be_an_output() -> None:
    """SHAPE computes nothing on the device: as an output of the model it is a copy of numbers."""
    b = FreeBatch()
    x = b.free("x", -1, 4)
    graph = read(b.build([x], [b.shape("y", x, 2)]))
    assert execute(graph, {"x": np.zeros((1, 4), np.float32)})["y"].tolist() == [1, 4]
