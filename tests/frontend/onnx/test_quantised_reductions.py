"""Means, softmax and parts of several scales between conversions become layers of integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from microtir import CompilationConfig, build
from microtir.config import Numerics
from microtir.dtype import DType
from microtir.graph.ir import Graph
from microtir.module.ir_module import IRModule
from microtir.operators.common.linear import rescales_in_float
from microtir.operators.conversion.definition import Dequantize, Quantize
from microtir.operators.pooling.definition import AveragePool2D
from microtir.operators.reduction.definition import Mean, Sum
from microtir.operators.softmax.definition import Softmax
from microtir.rewrite.reference import execute
from microtir.rewrite.requests.numerics import ChooseNumerics
from tests.frontend.onnx.test_quantised import Parts, executed
from tests.support.batch import load_batch
from tests.support.onnx_models import Array, run_onnxruntime, with_inferred_outputs

pytestmark = pytest.mark.tools

SAMPLE = settings(max_examples=25, deadline=None)
KINDS = ("AveragePool", "Padded", "GlobalAveragePool", "ReduceMean", "ReduceSum", "Softmax")
SHAPE = (1, 3, 6, 5)


def reduction(kind: str, seed: int) -> tuple[bytes, Array]:
    """A model of an operator between conversions, and an input."""
    rng = np.random.default_rng(seed)
    parts = Parts(rng, np.uint8 if seed % 2 else np.int8)
    x = rng.uniform(-2, 2, SHAPE).astype(np.float32)
    inputs, attributes = [parts.quantised("input", "x")], dict[str, Any]()
    if kind in ("AveragePool", "Padded"):
        attributes = {"kernel_shape": [3, 2], "strides": [1, 2]}
    if kind == "Padded":
        attributes["pads"] = [1, 0, 1, 1]
    if kind.startswith("Reduce"):
        attributes["keepdims"] = seed % 3 % 2
        parts.constants["axes"] = np.array([2, 3] if seed % 5 else [1], np.int64)
        inputs.append("axes")
    operator = "AveragePool" if kind == "Padded" else kind
    parts.nodes.append(helper.make_node(operator, inputs, ["y"], **attributes))
    result = parts.quantised("y", "result")
    if kind == "Softmax":
        parts.constants["result_scale"] = np.array(1 / 255, np.float32)
    return parts.model(x, result), x


def layers(graph: Graph) -> list[Any]:
    """The operators that are rescaled in float32."""
    return [node.op for node in graph.nodes if rescales_in_float(node)]


def steps_apart(graph: Graph, got: Array, want: Array) -> Array:
    """How many steps of the scale of a result two of it differ by."""
    scale = next(n.inputs[0].type.quant.scale for n in graph.nodes if isinstance(n.op, Dequantize))
    return np.abs(np.rint((got - want) / scale))


@given(st.sampled_from(KINDS), st.integers(0, 10_000))
@SAMPLE
def test_means_and_softmax_are_integers(kind: str, seed: int) -> None:
    """They give what onnxruntime gives, but where a real result is the middle of two integers."""
    model, x = reduction(kind, seed)
    (expected,) = run_onnxruntime(with_inferred_outputs(model), {"input": x})
    graph, got = executed(model, x)
    (op,) = layers(graph)
    assert isinstance(op, AveragePool2D | Mean | Sum | Softmax)
    kinds = [type(node.op) for node in graph.nodes]
    assert kinds.count(Quantize) == kinds.count(Dequantize) == 1
    apart = steps_apart(graph, got, expected)
    assert apart.max() <= 1 and (apart > 0).sum() <= 1
    # In fixed point the result is a step away at most; TFLite has no pools between scales.
    fixed = ChooseNumerics(Numerics.TFLM)(graph)
    assert bool(layers(fixed)) == (kind in ("AveragePool", "Padded"))
    (by_tflm,) = execute(fixed, {"input": x}).values()
    assert steps_apart(graph, by_tflm, got).max() <= 1 + (kind == "Softmax")


def test_a_mean_of_floats_that_are_no_integers_stays() -> None:
    """Nothing is known of the values of a caller."""
    rng = np.random.default_rng(3)
    parts = Parts(rng, np.int8)
    x = rng.uniform(-2, 2, SHAPE).astype(np.float32)
    parts.nodes.append(helper.make_node("GlobalAveragePool", ["input"], ["y"]))
    graph, _ = executed(parts.model(x, parts.quantised("y", "result")), x)
    assert not layers(graph)


def joined(seed: int) -> tuple[bytes, Array]:
    """A model that joins parts of three scales along the channels."""
    rng = np.random.default_rng(seed)
    parts = Parts(rng, np.int8)
    x = rng.uniform(-2, 2, (1, 3, 6, 6)).astype(np.float32)
    first = parts.quantised("input", "a")
    parts.nodes.append(helper.make_node("MaxPool", [first], ["m"], kernel_shape=[2, 2]))
    second = parts.quantised("m", "b")  # a maximum of another scale
    parts.constants["sizes"] = np.array([1, 3, 6, 6], np.int64)
    resize = helper.make_node("Resize", [second, "", "", "sizes"], ["r"], mode="nearest")
    parts.nodes.append(resize)
    third = parts.quantised("r", "c")
    parts.nodes.append(helper.make_node("Concat", [first, third, first], ["y"], axis=1))
    return parts.model(x, parts.quantised("y", "result")), x


@given(st.integers(0, 10_000))
@SAMPLE
def test_parts_of_other_scales_are_requantised(seed: int) -> None:
    """Maxima, resized images and joined parts stay integers; changes of scale are tables."""
    model, x = joined(seed)
    (expected,) = run_onnxruntime(with_inferred_outputs(model), {"input": x})
    graph, got = executed(model, x)
    np.testing.assert_array_equal(got, expected)
    found = [(n.inputs[0].dtype, n.output.dtype) for n in graph.nodes]
    assert found.count((DType.FLOAT32, DType.INT8)) == 1, "the input alone is quantised"
    assert found.count((DType.INT8, DType.FLOAT32)) == 1
    fixed = ChooseNumerics(Numerics.TFLM)(graph)
    assert not layers(fixed)
    (by_tflm,) = execute(fixed, {"input": x}).values()
    assert np.abs(by_tflm - got).max() <= 3 * 0.05, "a step of each scale on the way"


@pytest.mark.parametrize("target", ["c", "c -mcpu=cortex-m4"])
def test_compiled(tmp_path: Path, target: str) -> None:
    """Kernels give in C what the reference gives, with both rescalings."""
    made = [reduction(kind, seed) for kind in KINDS for seed in (2, 5)] + [joined(1)]
    graphs = [executed(model, x)[0] for model, x in made]
    config = CompilationConfig(targets=target)
    cases = [
        (graph, x, numerics)
        for graph, (_, x) in zip(graphs, made, strict=True)
        for numerics in (Numerics.MODEL, Numerics.TFLM)
    ]
    artifacts = [
        build(IRModule(graph=graph), config.with_(module_name=f"case_{n}", numerics=numerics))
        for n, (graph, _, numerics) in enumerate(cases)
    ]
    for (graph, x, numerics), model in zip(cases, load_batch(artifacts, tmp_path), strict=True):
        name = graph.inputs[0].name
        (want,) = execute(ChooseNumerics(numerics)(graph), {name: x}).values()
        (got,) = model.run({name: x}).values()
        np.testing.assert_array_equal(got, want)
