"""Transposes of images vanish, and what is left means the same."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from onnx import helper

from microtir.frontend import from_onnx
from microtir.graph.ir import Graph
from microtir.rewrite.imports.axis_orders import inverse, squeezed_order
from microtir.rewrite.reference import execute
from microtir.rewrite.verify import verify
from tests.support.onnx_models import (
    REPLAY,
    Array,
    model_of,
    run_onnxruntime,
    typed,
    with_inferred_outputs,
)

pytestmark = pytest.mark.tools

RNG = np.random.default_rng(5)


def weights(*shape: int) -> Array:
    """Return values of a size that keeps sums small."""
    return (RNG.standard_normal(shape) / 4).astype(np.float32)


def graph_of(model: bytes) -> Graph:
    """Return the graph of a model, verified."""
    graph = from_onnx(model, pass_config=REPLAY).graph
    assert graph is not None
    verify(graph)
    return graph


def check(model: bytes, transposes: int) -> None:
    """The graph has so many transposes, and computes what onnxruntime does."""
    graph = graph_of(model)
    assert [node.op.name for node in graph.nodes].count("transpose") == transposes
    inputs = {t.name: RNG.standard_normal(t.shape).astype(np.float32) for t in graph.inputs}
    expected = run_onnxruntime(with_inferred_outputs(model), inputs)
    for got, want in zip(execute(graph, inputs).values(), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def nodes_of_images() -> list[Any]:
    """Return convolutions with a sum, a pool, a concatenation and a normalisation between them."""
    make = helper.make_node
    return [
        make("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        make("BatchNormalization", ["a", "s", "b", "m", "v"], ["n"]),
        make("Relu", ["n"], ["r"]),
        make("Conv", ["r", "w2"], ["c"], pads=[1, 1, 1, 1], group=4),
        make("Add", ["c", "r"], ["sum"]),
        make("Pad", ["sum", "pads"], ["padded"]),
        make("MaxPool", ["padded"], ["pooled"], kernel_shape=[2, 2], strides=[2, 2]),
        make("Concat", ["pooled", "pooled"], ["both"], axis=1),
        make("ReduceMean", ["both", "axes"], ["mean"], keepdims=1),
        make("Sigmoid", ["mean"], ["gate"]),
        make("Mul", ["both", "gate"], ["scaled"]),
    ]


CONSTANTS = {
    "w": weights(4, 3, 3, 3), "w2": weights(4, 1, 3, 3), "s": weights(4) + 1, "b": weights(4),
    "m": weights(4), "v": np.abs(weights(4)) + 1, "pads": np.array([0, 0, 1, 0, 0, 0, 1, 2]),
    "axes": np.array([2, 3]),
}  # fmt: skip


def test_images_are_transposed_where_they_come_in_and_go_out() -> None:
    """Between operators of images nothing is transposed."""
    x = typed("x", (1, 3, 8, 6))
    check(model_of(nodes_of_images(), [x], ["scaled"], CONSTANTS), 2)


def test_a_layer_takes_an_image_as_it_lies() -> None:
    """What is flattened is not transposed: the weights of the layer are laid out instead."""
    nodes = [
        *nodes_of_images(),
        helper.make_node("Flatten", ["scaled"], ["flat"]),
        helper.make_node("Gemm", ["flat", "g", "gb"], ["y"], transB=1),
    ]
    constants = CONSTANTS | {"g": weights(5, 8 * 5 * 4), "gb": weights(5)}
    check(model_of(nodes, [typed("x", (1, 3, 8, 6))], ["y"], constants), 1)


def test_images_of_one_channel_are_not_transposed() -> None:
    """Their elements lie alike in both layouts."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("GlobalMaxPool", ["a"], ["g"]),
        helper.make_node("Squeeze", ["g", "axes"], ["y"]),
    ]
    constants = {"w": weights(3, 1, 3, 3), "axes": np.array([2, 3])}
    check(model_of(nodes, [typed("x", (1, 1, 8, 6))], ["y"], constants), 0)


def test_lines_are_images_of_one_row() -> None:
    """Axes of one element come and go without a transpose."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("Conv", ["t", "w"], ["a"], pads=[1, 1]),
        helper.make_node("Unsqueeze", ["a", "two"], ["u"]),
        helper.make_node("Conv", ["u", "w2"], ["c"]),
        helper.make_node("Squeeze", ["c", "two"], ["s"]),
        helper.make_node("AveragePool", ["s"], ["p"], kernel_shape=[2]),
        helper.make_node("Transpose", ["p"], ["y"], perm=[0, 2, 1]),
    ]
    constants = {"w": weights(4, 3, 3), "w2": weights(2, 4, 1, 3), "two": np.array([2])}
    check(model_of(nodes, [typed("x", (1, 12, 3))], ["y"], constants), 0)


def test_an_output_has_its_own_name_and_layout() -> None:
    """An output that is a view of another one, or of an input, is a copy."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("Transpose", ["t"], ["same"], perm=[0, 2, 1]),
        helper.make_node("Relu", ["t"], ["r"]),
    ]
    model = model_of(nodes, [typed("x", (1, 2, 3))], ["t", "same", "r"])
    assert [tensor.name for tensor in graph_of(model).outputs] == ["t", "same", "r"]
    check(model, 2)


@given(st.data())
def test_axes_of_one_element_come_and_go(data: st.DataObject) -> None:
    """The order that is found shows the same elements as a reshape does."""
    long = data.draw(st.lists(st.integers(2, 3), min_size=1, max_size=3))

    def with_ones() -> list[int]:
        shape = list(long)
        for _ in range(data.draw(st.integers(0, 3))):
            shape.insert(data.draw(st.integers(0, len(shape))), 1)
        return shape

    before, after = with_ones(), with_ones()
    order = tuple(data.draw(st.permutations(range(len(before)))))
    found = squeezed_order(order, before, after)
    assume(found is not None)
    assert found is not None
    value = np.arange(np.prod(before)).reshape(before)
    lying = value.transpose(inverse(order)).reshape([after[axis] for axis in inverse(found)])
    np.testing.assert_array_equal(lying.transpose(found), value.reshape(after))


def test_other_shapes_have_no_order() -> None:
    """What merges or splits axes is no matter of axes of one element."""
    for before, after in itertools.permutations(((2, 3), (6,), (3, 2)), 2):
        assert squeezed_order(tuple(range(len(before))), before, after) is None
