"""What a caller gives as planes, as floats or as uint8 is made ready where it enters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from microtir.dtype import DType
from microtir.frontend import from_onnx
from microtir.graph.ir import Graph
from microtir.operators.convolution.definition import Conv2D
from microtir.rewrite.reference import execute
from tests.frontend.onnx.test_quantised import Parts, executed, integer_layers
from tests.support.onnx_models import (
    Array,
    model_of,
    run_onnxruntime,
    typed,
    with_inferred_outputs,
)

pytestmark = pytest.mark.tools


def convolution(dtype: Any) -> tuple[bytes, Array]:
    """A model whose first layer is a convolution of an input of floats or of integers."""
    rng = np.random.default_rng(11)
    is_float = dtype is np.float32
    parts = Parts(rng, np.uint8 if is_float else dtype)
    shape = (1, 3, 6, 8)
    if is_float:
        x = rng.uniform(-2, 2, shape).astype(np.float32)
        data = parts.quantised("input", "x")
    else:
        x = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)
        node = helper.make_node("DequantizeLinear", ["input", *parts.scaling("x")], ["x"])
        parts.nodes.append(node)
        data = "x"
    weights = parts.weights("w", (4, 3, 3, 3), by_channel=True)
    parts.nodes.append(helper.make_node("Conv", [data, weights], ["y"]))
    scaling = parts.scaling("result")
    parts.nodes.append(helper.make_node("QuantizeLinear", ["y", *scaling], ["z"]))
    output = typed("z", (1, 4, 4, 6), parts.constants["result_zero"].dtype)
    return model_of(parts.nodes, [typed("input", x)], [output], parts.constants), x


def operators(graph: Graph) -> list[tuple[str, DType]]:
    """What nodes are, with the types of their results."""
    return [(node.op.name, node.output.dtype) for node in graph.nodes]


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int8])
def test_axes_move_first(dtype: Any) -> None:
    """A transpose, what makes int8 of the rows, a layer of integers, and an output as it was."""
    model, x = convolution(dtype)
    graph, got = executed(model, x)
    np.testing.assert_array_equal(got, run_onnxruntime(model, {"input": x})[0])
    assert integer_layers(graph) == 1
    kinds = operators(graph)
    assert kinds[0] == ("transpose", DType(np.dtype(dtype).name))
    layer = next(n for n, node in enumerate(graph.nodes) if isinstance(node.op, Conv2D))
    assert kinds[1:layer] == ([] if dtype is np.int8 else [("quantize", DType.INT8)])
    leaving = [] if dtype is np.int8 else [("quantize", DType.UINT8)]
    assert kinds[layer + 1 :] == [("transpose", DType.INT8), *leaving]


def test_joined_uint8_of_a_caller() -> None:
    """Inputs that are joined and are dequantised, too, are no int8 of the joining."""
    rng = np.random.default_rng(3)
    parts = Parts(rng, np.uint8)
    x, y, z = (rng.integers(0, 256, (2, 3)).astype(np.uint8) for _ in range(3))
    scaling = parts.scaling("s")
    for name in "xyz":
        node = helper.make_node("DequantizeLinear", [name, *scaling], [f"{name}_real"])
        parts.nodes.append(node)
    parts.nodes.append(helper.make_node("Concat", ["x", "y"], ["joined"], axis=0))
    outputs = [typed("joined", (4, 3), np.uint8), "x_real", "y_real", "z_real"]
    inputs = [typed("x", x), typed("y", y), typed("z", z)]
    model = with_inferred_outputs(model_of(parts.nodes, inputs, outputs, parts.constants))
    graph = from_onnx(model).graph
    assert graph is not None
    got = execute(graph, {"x": x, "y": y, "z": z})
    for one, other in zip(
        got.values(), run_onnxruntime(model, {"x": x, "y": y, "z": z}), strict=True
    ):
        np.testing.assert_array_equal(one, other)
