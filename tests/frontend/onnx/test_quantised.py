"""Quantised models become layers of integers that equal onnxruntime to the bit."""

from __future__ import annotations

from dataclasses import dataclass
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
from microtir.errors import UnsupportedModelError
from microtir.frontend import from_onnx
from microtir.graph.ir import Graph
from microtir.module.ir_module import IRModule
from microtir.operators.arithmetic.definition import Add, Mul, Sub
from microtir.operators.common.linear import rescales_in_float
from microtir.operators.conversion.definition import Dequantize, Quantize, Tabulated
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.rewrite.reference import execute
from microtir.rewrite.requests.numerics import ChooseNumerics
from tests.support.batch import load_batch
from tests.support.onnx_models import (
    REPLAY,
    Array,
    model_of,
    run_onnxruntime,
    typed,
    with_inferred_outputs,
)

pytestmark = pytest.mark.tools

SAMPLE = settings(max_examples=40, deadline=None)


class Parts:
    """Nodes and constants of a quantised model that is being written."""

    def __init__(self, rng: np.random.Generator, stored: type[np.signedinteger[Any]] | Any) -> None:
        self.rng, self.stored = rng, stored
        self.nodes: list[Any] = []
        self.constants: dict[str, Array] = {}

    def scaling(self, name: str, *, channels: int = 0) -> tuple[str, str]:
        """Add a scale and a zero point, or symmetric ones for each channel; return their names."""
        count = (channels,) if channels else ()
        self.constants[f"{name}_scale"] = self.rng.uniform(0.002, 0.05, count).astype(np.float32)
        zero = np.zeros(count, np.int8) if channels else self._zero()
        self.constants[f"{name}_zero"] = zero
        return f"{name}_scale", f"{name}_zero"

    def _zero(self) -> Array:
        info = np.iinfo(self.stored)
        return np.array(self.rng.integers(info.min, info.max + 1), self.stored)

    def quantised(self, x: str, name: str) -> str:
        """Add QuantizeLinear and DequantizeLinear; return the name of the floats."""
        scaling = self.scaling(name)
        self.nodes += [
            helper.make_node("QuantizeLinear", [x, *scaling], [f"{name}_q"]),
            helper.make_node("DequantizeLinear", [f"{name}_q", *scaling], [name]),
        ]
        return name

    def weights(self, name: str, shape: tuple[int, ...], *, by_channel: bool) -> str:
        """Add stored weights and DequantizeLinear; return the name of the floats.

        Of 7 bits: onnxruntime saturates larger ones in between on some CPUs.
        """
        if by_channel:
            scaling = self.scaling(name, channels=shape[0])
        else:
            scaling = self.scaling(name)
            self.constants[scaling[1]] = np.array(0, np.int8)
        self.constants[f"{name}_q"] = self.rng.integers(-64, 64, shape).astype(np.int8)
        node = helper.make_node(
            "DequantizeLinear", [f"{name}_q", *scaling], [name], axis=0 if by_channel else None
        )
        self.nodes.append(node)
        return name

    def bias(self, x: str, weights: str, channels: int) -> str:
        """Add a bias of int32 with the product of both scales; return the name of the floats."""
        scale = self.constants[f"{x}_scale"] * self.constants[f"{weights}_scale"]
        self.constants["bias_scale"] = np.broadcast_to(scale, (channels,)).astype(np.float32)
        self.constants["bias_zero"] = np.zeros(channels, np.int32)
        self.constants["bias_q"] = self.rng.integers(-5000, 5000, channels).astype(np.int32)
        inputs = ["bias_q", "bias_scale", "bias_zero"]
        self.nodes.append(helper.make_node("DequantizeLinear", inputs, ["bias"], axis=0))
        return "bias"

    def model(self, x: Array, output: str) -> bytes:
        """Return the model."""
        return model_of(self.nodes, [typed("input", x)], [output], self.constants)


def integer_layers(graph: Graph) -> int:
    """Return how many layers add integers and rescale them as ONNX does."""
    return sum(
        isinstance(node.op, Conv2D | FullyConnected) and rescales_in_float(node)
        and node.inputs[0].dtype is DType.INT8 for node in graph.nodes
    )  # fmt: skip


def executed(model: bytes, x: Array) -> tuple[Graph, Array]:
    """Return the graph of a model and what its reference gives."""
    graph = from_onnx(model, pass_config=REPLAY).graph
    assert graph is not None
    (got,) = execute(graph, {"input": x}).values()
    return graph, got


def check(model: bytes, x: Array) -> Graph:
    """Assert that a model gives what onnxruntime gives; return its graph."""
    (expected,) = run_onnxruntime(with_inferred_outputs(model), {"input": x})
    graph, got = executed(model, x)
    np.testing.assert_array_equal(got, expected)
    return graph


@dataclass(frozen=True)
class Pair:
    """A model of conversions around a layer, the same with a QLinear operator, and an input."""

    model: bytes
    oracle: bytes
    x: Array


def convolution(seed: int, *, is_unsigned: bool, by_channel: bool, group: int) -> Pair:
    """Return a convolution with a bias."""
    rng = np.random.default_rng(seed)
    parts = Parts(rng, np.uint8 if is_unsigned else np.int8)
    channels, outputs = 4, 8
    x = rng.uniform(-2, 2, (1, channels, 6, 5)).astype(np.float32)
    data = parts.quantised("input", "x")
    weights = parts.weights("w", (outputs, channels // group, 3, 3), by_channel=by_channel)
    bias = parts.bias("x", "w", outputs)
    attributes: dict[str, Any] = {"group": group, "pads": [1, 0, 1, 2]}
    parts.nodes.append(helper.make_node("Conv", [data, weights, bias], ["y"], **attributes))
    model = parts.model(x, parts.quantised("y", "result"))
    inputs = ["x_q", "x_scale", "x_zero", "w_q", "w_scale", "w_zero", "y_scale", "y_zero"]
    names = {"y_scale": "result_scale", "y_zero": "result_zero"}
    inputs = [names.get(name, name) for name in (*inputs, "bias_q")]
    parts.nodes[1:-2] = [helper.make_node("QLinearConv", inputs, ["result_q"], **attributes)]
    parts.nodes.pop(-2)
    return Pair(model, parts.model(x, "result"), x)


FORMS = st.tuples(st.booleans(), st.booleans(), st.sampled_from([1, 4]))


@given(st.integers(0, 10_000), FORMS)
@SAMPLE
def test_convolutions(seed: int, form: tuple[bool, bool, int]) -> None:
    """A convolution between conversions is QLinearConv, to the bit."""
    is_unsigned, by_channel, group = form
    pair = convolution(seed, is_unsigned=is_unsigned, by_channel=by_channel, group=group)
    (expected,) = run_onnxruntime(with_inferred_outputs(pair.oracle), {"input": pair.x})
    for model in (pair.model, pair.oracle):
        graph, got = executed(model, pair.x)
        np.testing.assert_array_equal(got, expected)
        assert integer_layers(graph) == 1


@pytest.mark.parametrize("target", ["c", "c -mcpu=cortex-m4", "c -mcpu=cortex-m55"])
def test_compiled_convolutions(tmp_path: Path, target: str) -> None:
    """Kernels that are offered for a target give the same in C."""
    pairs = [
        convolution(seed, is_unsigned=bool(seed & 1), by_channel=bool(seed & 2), group=group)
        for seed in range(4)
        for group in (1, 4)
    ]
    config = CompilationConfig(targets=target)
    graphs = [executed(pair.model, pair.x)[0] for pair in pairs]
    artifacts = [
        build(IRModule(graph=graph), config.with_(module_name=f"case_{number}"))
        for number, graph in enumerate(graphs)
    ]
    models = load_batch(artifacts, tmp_path)
    for pair, graph, model in zip(pairs, graphs, models, strict=True):
        (expected,) = run_onnxruntime(with_inferred_outputs(pair.oracle), {"input": pair.x})
        (got,) = model.run({graph.inputs[0].name: pair.x}).values()
        np.testing.assert_array_equal(got, expected)


@given(st.integers(0, 10_000), st.booleans())
@SAMPLE
def test_dense_layers(seed: int, has_relu: bool) -> None:
    """Gemm with transposed weights: exact sums, one float32 product, rounded to the nearest."""
    rng = np.random.default_rng(seed)
    parts = Parts(rng, np.int8)
    x = rng.uniform(-2, 2, (3, 17)).astype(np.float32)
    data = parts.quantised("input", "x")
    weights = parts.weights("w", (5, 17), by_channel=False)
    bias = parts.bias("x", "w", 5)
    parts.nodes.append(helper.make_node("Gemm", [data, weights, bias], ["y"], transB=1))
    if has_relu:
        parts.nodes.append(helper.make_node("Relu", ["y"], ["z"]))
    result = parts.quantised("z" if has_relu else "y", "result")
    graph, got = executed(parts.model(x, result), x)
    assert integer_layers(graph) == 1
    held = parts.constants
    stored = np.clip(np.rint(x / held["x_scale"]) + held["x_zero"], -128, 127).astype(np.int64)
    sums = (stored - held["x_zero"]) @ held["w_q"].astype(np.int64).T + held["bias_q"]
    factor = held["x_scale"] * held["w_scale"] / held["result_scale"]
    whole = np.rint(sums.astype(np.float32) * factor) + held["result_zero"]
    whole = np.clip(whole, held["result_zero"] if has_relu else -128, 127)
    np.testing.assert_array_equal(got, (whole - held["result_zero"]) * held["result_scale"])


def test_the_end_of_an_activation_is_rounded_to_even() -> None:
    """The 6 of a RELU6 is stored as any float, here half way between two integers."""
    rng = np.random.default_rng(7)
    parts = Parts(rng, np.int8)
    x = rng.uniform(2, 3, (2, 40)).astype(np.float32)
    parts.quantised("input", "x")
    parts.weights("w", (3, 40), by_channel=False)
    parts.constants["w_q"] = np.abs(parts.constants["w_q"])
    parts.constants.update(six=np.float32(6), none=np.float32(0))
    parts.nodes.append(helper.make_node("Gemm", ["x", "w"], ["y"], transB=1))
    parts.nodes.append(helper.make_node("Clip", ["y", "none", "six"], ["z"]))
    result = parts.quantised("z", "result")
    parts.constants["result_scale"] = np.array(6 / 100.5, np.float32)
    parts.constants["result_zero"] = np.array(-20, np.int8)
    assert np.float32(6) / parts.constants["result_scale"] == 100.5
    graph = check(parts.model(x, result), x)
    assert integer_layers(graph) == 1


def test_qlinear_conv_of_integers() -> None:
    """The operator itself, whose image a caller gives as uint8."""
    rng = np.random.default_rng(3)
    parts = Parts(rng, np.uint8)
    x = rng.integers(0, 256, (1, 3, 7, 7)).astype(np.uint8)
    parts.scaling("x")
    parts.weights("w", (4, 3, 3, 3), by_channel=True)
    parts.nodes.clear()
    parts.scaling("y")
    parts.constants["b"] = rng.integers(-4000, 4000, 4).astype(np.int32)
    inputs = ["input", "x_scale", "x_zero", "w_q", "w_scale", "w_zero", "y_scale", "y_zero", "b"]
    parts.nodes.append(helper.make_node("QLinearConv", inputs, ["y"], strides=[2, 2]))
    output = typed("y", (1, 4, 3, 3), np.uint8)
    model = model_of(parts.nodes, [typed("input", x)], [output], parts.constants)
    (expected,) = run_onnxruntime(model, {"input": x})
    np.testing.assert_array_equal(executed(model, x)[1], expected)


def test_functions_of_one_element_are_tables() -> None:
    """A sigmoid between conversions is looked up; what moves elements moves the integers."""
    rng = np.random.default_rng(4)
    parts = Parts(rng, np.int8)
    x = rng.uniform(-6, 6, (1, 4, 6, 6)).astype(np.float32)
    parts.quantised("input", "x")
    parts.nodes.append(helper.make_node("MaxPool", ["x"], ["m"], kernel_shape=[2, 2]))
    parts.nodes.append(helper.make_node("Sigmoid", ["m"], ["s"]))
    graph = check(parts.model(x, parts.quantised("s", "result")), x)
    kinds = [type(node.op) for node in graph.nodes]
    assert kinds.count(Tabulated) == 1
    assert kinds.count(Quantize) == kinds.count(Dequantize) == 1


def test_padding_is_not_moved_into_integers() -> None:
    """Zeros that a model adds are the zero point of integers, and not their 0."""
    rng = np.random.default_rng(5)
    parts = Parts(rng, np.int8)
    x = rng.uniform(-1, 1, (1, 2, 3, 3)).astype(np.float32)
    parts.quantised("input", "x")
    parts.constants["pads"] = np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)
    parts.nodes.append(helper.make_node("Pad", ["x", "pads"], ["p"]))
    check(parts.model(x, parts.quantised("p", "result")), x)


def test_weights_are_found_again_to_the_bit() -> None:
    """Stored weights come back from the floats that they stand for."""
    rng = np.random.default_rng(6)
    parts = Parts(rng, np.int8)
    x = rng.uniform(-1, 1, (1, 8)).astype(np.float32)
    parts.quantised("input", "x")
    parts.weights("w", (6, 8), by_channel=True)
    parts.nodes.append(helper.make_node("Gemm", ["x", "w"], ["y"], transB=1))
    graph = from_onnx(parts.model(x, parts.quantised("y", "result"))).graph
    assert graph is not None
    (layer,) = (node for node in graph.nodes if isinstance(node.op, FullyConnected))
    np.testing.assert_array_equal(layer.inputs[1].data, parts.constants["w_q"])


BINARY = st.sampled_from(["Add", "Sub", "Mul"])


@given(st.integers(0, 10_000), BINARY, st.booleans(), st.booleans())
@SAMPLE
def test_operators_on_two_activations(
    seed: int, operator: str, has_relu: bool, is_broadcast: bool
) -> None:
    """They are integers between conversions, and equal what onnxruntime computes step by step."""
    rng = np.random.default_rng(seed)
    parts = Parts(rng, np.int8)
    x = rng.uniform(-2, 2, (1, 3, 5, 6)).astype(np.float32)
    first = parts.quantised("input", "a")
    source = "input"
    if is_broadcast:
        parts.nodes.append(helper.make_node("GlobalMaxPool", ["input"], ["m"]))
        source = "m"
    second = parts.quantised(source, "b")
    parts.nodes.append(helper.make_node(operator, [first, second], ["y"]))
    if has_relu:
        parts.nodes.append(helper.make_node("Relu", ["y"], ["z"]))
    result = parts.quantised("z" if has_relu else "y", "result")
    graph = check(parts.model(x, result), x)
    layers = [node for node in graph.nodes if isinstance(node.op, Add | Sub | Mul)]
    assert [rescales_in_float(node) for node in layers] == [True]


def test_numerics_choose_the_rescaling() -> None:
    """`tflm` rescales in fixed point: at most one step from the definition; TFLite has no other."""
    pair = convolution(1, is_unsigned=False, by_channel=True, group=1)
    graph, by_model = executed(pair.model, pair.x)
    assert ChooseNumerics(Numerics.MODEL)(graph) is graph
    assert ChooseNumerics(Numerics.ONNXRUNTIME)(graph) is graph
    fixed = ChooseNumerics(Numerics.TFLM)(graph)
    assert not any(rescales_in_float(node) for node in fixed.nodes)
    (by_tflm,) = execute(fixed, {"input": pair.x}).values()
    scales = [n.inputs[0].type.quant.scale for n in graph.nodes if isinstance(n.op, Dequantize)]
    assert np.abs(by_tflm - by_model).max() <= 1.001 * scales[-1]
    with pytest.raises(UnsupportedModelError, match="fixed point"):
        ChooseNumerics(Numerics.ONNXRUNTIME)(fixed)


@pytest.mark.parametrize("is_constant", [True, False])
def test_a_huge_bias_is_one_of_a_constant_channel(is_constant: bool) -> None:
    """More bits than a float32 has are legal where all sums have one result: not at a tie."""
    rng = np.random.default_rng(8)
    parts = Parts(rng, np.int8)
    x = rng.uniform(-2, 2, (2, 12)).astype(np.float32)
    parts.quantised("input", "x")
    parts.weights("w", (3, 12), by_channel=True)
    scales = parts.constants["w_scale"].copy()
    scales[1] = 1e-8
    parts.constants["w_scale"] = scales
    bias = rng.integers(-4000, 4000, 3).astype(np.int32)
    bias[1] = (1 << 30) + 77
    products = parts.constants["x_scale"] * scales
    parts.constants.update(b=bias, b_scale=products, b_zero=np.zeros(3, np.int32))
    node = helper.make_node("DequantizeLinear", ["b", "b_scale", "b_zero"], ["bias"], axis=0)
    parts.nodes += [node, helper.make_node("Gemm", ["x", "w", "bias"], ["y"], transB=1)]
    result = parts.quantised("y", "result")
    parts.constants["result_scale"] = np.array(
        products[1] * 2.0**30 / (50.2 if is_constant else 50.5), np.float32
    )
    parts.constants["result_zero"] = np.array(0, np.int8)
    model = parts.model(x, result)
    graph = check(model, x) if is_constant else executed(model, x)[0]
    assert integer_layers(graph) == is_constant
