"""What stands between a layer and the conversion of its result is no reason to compute floats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import helper

import microtir
from microtir import driver, host
from microtir.dtype import DType
from microtir.frontend import float_layers, from_onnx
from microtir.graph.ir import Graph
from microtir.rewrite.reference import execute
from tests.frontend.onnx.test_quantised import Parts
from tests.frontend.onnx.test_several_outputs import floats_of
from tests.support.onnx_models import Array, run_onnxruntime, with_inferred_outputs

pytestmark = pytest.mark.tools

CHANNELS, CLASSES = 6, 4
Node = Any


def node(operator: str, x: str, y: str, *others: str, **attributes: Any) -> Node:
    """Return a node of one main operand."""
    return helper.make_node(operator, [x, *others], [y], **attributes)


FLAT: Mapping[str, Sequence[Node]] = {
    "Flatten": [node("Flatten", "m", "f")],
    "Reshape": [node("Reshape", "m", "f", "rows")],
    "Reshape of what is left": [node("Reshape", "m", "f", "rest")],
    "Squeeze": [node("Squeeze", "m", "f", "last")],
    "Identity and Dropout": [
        node("Identity", "m", "i"), node("Flatten", "i", "j"), node("Dropout", "j", "f"),
    ],
    "Transpose": [node("Transpose", "m", "t", perm=[0, 2, 3, 1]), node("Flatten", "t", "f")],
    "Unsqueeze": [node("Unsqueeze", "m", "u", "first"), node("Flatten", "u", "f", axis=2),
                  ],
    "Slice": [node("Flatten", "m", "i"), node("Slice", "i", "f", "begin", "end", "axis")],
    "Gather": [node("Flatten", "m", "i"), node("Gather", "i", "f", "picked", axis=1)],
}  # fmt: skip
CONSTANTS: Mapping[str, Array] = {
    "rows": np.array([1, CHANNELS]),
    "rest": np.array([1, -1]),
    "last": np.array([2, 3]),
    "first": np.array([0]),
    "begin": np.array([0]),
    "end": np.array([CHANNELS]),
    "axis": np.array([1]),
    "picked": np.arange(CHANNELS)[::-1].copy(),
}


def head(flat: Sequence[Node], dtype: Any, pool: str = "GlobalAveragePool") -> tuple[bytes, Array]:
    """Return a model that pools an image, flattens the means, and has a layer of them."""
    parts = Parts(np.random.default_rng(4), dtype)
    parts.constants.update(CONSTANTS)
    x = np.random.default_rng(5).standard_normal((1, CHANNELS, 5, 5)).astype(np.float32)
    image = parts.quantised("input", "x")
    attributes: dict[str, Any] = {"kernel_shape": [5, 5]} if pool == "AveragePool" else {}
    parts.nodes.append(helper.make_node(pool, [image], ["m"], **attributes))
    parts.nodes += flat
    features = parts.quantised("f", "features")
    weights = parts.weights("weights", (CLASSES, CHANNELS), by_channel=True)
    parts.nodes.append(helper.make_node("Gemm", [features, weights], ["g"], transB=1))
    return parts.model(x, parts.quantised("g", "result")), x


def graph_of(model: bytes) -> Graph:
    """Return the graph of a model."""
    graph = from_onnx(model).graph
    assert graph is not None
    return graph


@pytest.mark.parametrize("dtype", [np.int8, np.uint8], ids=["int8", "uint8"])
@pytest.mark.parametrize("name", FLAT)
def test_heads(name: str, dtype: Any) -> None:
    """Means and the layer behind them are of integers, equal to onnxruntime to the bit."""
    for pool in ("GlobalAveragePool", "AveragePool"):
        model, x = head(FLAT[name], dtype, pool)
        graph = graph_of(model)
        assert set(floats_of(graph)) <= {"transpose"}  # of the image of the caller
        assert float_layers(model) == ()
        (want,) = run_onnxruntime(with_inferred_outputs(model), {"input": x})
        (got,) = execute(graph, {"input": x}).values()
        np.testing.assert_array_equal(got, want)


def test_types_of_the_plan() -> None:
    """The layers that are planned take and give int8, and the C gives what onnxruntime gives."""
    model, x = head(FLAT["Flatten"], np.uint8)
    lowered = driver.lower(from_onnx(model))
    assert lowered.program is not None
    planned = {op.node.op.name: op.node for op in lowered.program.plan.operators}
    dense = planned["fully_connected"]
    types = [tensor.dtype for tensor in (*dense.inputs[:2], *dense.outputs)]
    assert types == [DType.INT8] * 3
    assert not [name for name in planned if name in ("mean", "average_pool_2d")
                and planned[name].output.dtype is not DType.INT8]  # fmt: skip
    (want,) = run_onnxruntime(with_inferred_outputs(model), {"input": x})
    (got,) = host.load(microtir.build(from_onnx(model))).run({"input": x}).values()
    np.testing.assert_array_equal(got, want)


BETWEEN: Mapping[str, Sequence[Node]] = {
    "MaxPool": [node("Relu", "l", "r"), node("MaxPool", "r", "y", kernel_shape=[2, 2])],
    "a clamp behind a reshape": [node("Reshape", "l", "r", "shape"), node("Relu", "r", "y")],
    "a clamp between moves": [
        node("Transpose", "l", "t", perm=[0, 1, 3, 2]), node("Relu", "t", "r"),
        node("Reshape", "r", "y", "shape"),
    ],
    "DepthToSpace": [node("DepthToSpace", "l", "y", blocksize=2)],
    "ReduceMax": [node("ReduceMax", "l", "y", "axes")],
    "Resize": [node("Resize", "l", "y", "", "scales", mode="nearest")],
    "Tile": [node("Tile", "l", "y", "repeats")],
    "reflected border": [node("Pad", "l", "y", "pads", mode="reflect")],
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.int8, np.uint8], ids=["int8", "uint8"])
@pytest.mark.parametrize("name", BETWEEN)
def test_behind_a_convolution(name: str, dtype: Any) -> None:
    """What moves or picks its results, and a clamp, leave it a layer of integers."""
    parts = Parts(np.random.default_rng(4), dtype)
    parts.constants.update({
        "shape": np.array([1, 4, 16]), "axes": np.array([2]), "repeats": np.array([1, 1, 2, 1]),
        "scales": np.array([1, 1, 2, 2], np.float32), "pads": np.array([0, 0, 1, 0, 0, 0, 1, 1]),
    })  # fmt: skip
    x = np.random.default_rng(5).standard_normal((1, 3, 4, 4)).astype(np.float32)
    image = parts.quantised("input", "x")
    weights = parts.weights("weights", (4, 3, 1, 1), by_channel=True)
    parts.nodes.append(helper.make_node("Conv", [image, weights], ["l"]))
    parts.nodes += BETWEEN[name]
    model = parts.model(x, parts.quantised("y", "result"))
    graph = graph_of(model)
    assert set(floats_of(graph)) <= {"transpose"}
    (want,) = run_onnxruntime(with_inferred_outputs(model), {"input": x})
    (got,) = execute(graph, {"input": x}).values()
    np.testing.assert_array_equal(got, want)


def test_what_only_ranks_is_not_moved() -> None:
    """TopK of floats that become equal integers may pick another one: it stays in floats."""
    parts = Parts(np.random.default_rng(4), np.int8)
    parts.constants["k"] = np.array([3])
    x = np.random.default_rng(5).standard_normal((2, 8)).astype(np.float32)
    data = parts.quantised("input", "x")
    weights = parts.weights("weights", (8, 8), by_channel=False)
    parts.nodes += [
        helper.make_node("Gemm", [data, weights], ["l"], transB=1),
        helper.make_node("TopK", ["l", "k"], ["y", "places"]),
    ]
    graph = graph_of(parts.model(x, parts.quantised("y", "result")))
    assert "fully_connected" in floats_of(graph)
