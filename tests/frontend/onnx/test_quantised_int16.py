"""Layers between conversions to 16 bits are layers of integers.

onnxruntime computes them in float32, which is as near as a small part of a step: outputs are equal
but where a value lies so near the middle of two integers.
"""

from __future__ import annotations

import math
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
from microtir.frontend import from_onnx
from microtir.graph.ir import Graph
from microtir.module.ir_module import IRModule
from microtir.operators.common.linear import rescales_in_float
from microtir.rewrite.reference import execute
from microtir.rewrite.requests.numerics import ChooseNumerics
from tests.support.batch import load_batch
from tests.support.onnx_models import (
    Array,
    model_of,
    run_onnxruntime,
    typed,
    with_inferred_outputs,
)

pytestmark = pytest.mark.tools

FORMS = st.tuples(st.booleans(), st.sampled_from(["", "com.microsoft"]), st.booleans())
SHAPE = (1, 4, 6, 6)


class Written:
    """A model of a few layers with conversions to 16 bits around each."""

    def __init__(self, seed: int, *, unsigned: bool, domain: str, symmetric: bool) -> None:
        self.rng = np.random.default_rng(seed)
        self.stored: Any = np.uint16 if unsigned else np.int16
        self.domain, self.symmetric = domain, symmetric
        self.nodes: list[Any] = []
        self.constants: dict[str, Array] = {}

    def quantised(self, x: str, reach: float) -> str:
        """Add both conversions of values up to a magnitude; return the name of the floats."""
        info = np.iinfo(self.stored)
        middle = (info.min + info.max + 1) // 2
        zero = middle if self.symmetric else middle + int(self.rng.integers(-9000, 9000))
        scale = np.float32(2 * reach / 65536)
        self.constants |= {f"{x}_s": np.array(scale), f"{x}_z": np.array(zero, self.stored)}
        for kind, of, made in (("Quantize", x, f"{x}_q"), ("Dequantize", f"{x}_q", f"{x}_r")):
            inputs = [of, f"{x}_s", f"{x}_z"]
            self.nodes.append(helper.make_node(f"{kind}Linear", inputs, [made], domain=self.domain))
        return f"{x}_r"

    def layer(self, kind: str, inputs: list[str], output: str, reach: float, **more: Any) -> str:
        """Add an operator and the conversions behind it; return the name of the floats."""
        self.nodes.append(helper.make_node(kind, inputs, [output], **more))
        return self.quantised(output, reach)

    def weighted(self, kind: str, x: str, output: str, shape: tuple[int, ...], **more: Any) -> str:
        """Add a layer with weights of int8 for each channel, and a bias of int32."""
        channels = shape[0]
        # Values stay of one size from layer to layer.
        size = 127 * math.sqrt(math.prod(shape[1:]))
        scale = (self.rng.uniform(1, 2, channels) / size).astype(np.float32)
        product = scale * self.constants[f"{x.removesuffix('_r')}_s"]
        stored: dict[str, tuple[Array, Array, Any]] = {
            f"{output}_w": (self.rng.integers(-127, 128, shape).astype(np.int8), scale, np.int8),
            f"{output}_b": (
                np.rint(self.rng.normal(0, 0.3, channels) / product).astype(np.int32),
                product,
                np.int32,
            ),
        }
        for name, (values, scales, zero) in stored.items():
            self.constants |= {name: values, f"{name}_s": scales}
            self.constants[f"{name}_z"] = np.zeros(channels, zero)
            inputs = [name, f"{name}_s", f"{name}_z"]
            self.nodes.append(helper.make_node("DequantizeLinear", inputs, [f"{name}_r"], axis=0))
        return self.layer(kind, [x, *(f"{name}_r" for name in stored)], output, 4, **more)

    def model(self, output: str) -> bytes:
        """Return the model."""
        x = typed("x", SHAPE)
        domains = {"com.microsoft": 1} if self.domain else {}
        return model_of(self.nodes, [x], [output], self.constants, domains=domains)


def network(seed: int, *, unsigned: bool, domain: str, symmetric: bool) -> bytes:
    """Return a network that has each sort of layer once."""
    made = Written(seed, unsigned=unsigned, domain=domain, symmetric=symmetric)
    x = made.quantised("x", 2)
    a = made.weighted("Conv", x, "a", (6, 4, 3, 3), pads=[1, 0, 1, 1])
    b = made.weighted("Conv", a, "b", (6, 1, 3, 3), pads=[1, 1, 1, 1], group=6)
    c = made.layer("Add", [a, b], "c", 8)
    d = made.layer("Mul", [c, b], "d", 20)
    e = made.layer("MaxPool", [d], "e", 20, kernel_shape=[2, 2])
    f = made.layer("AveragePool", [e], "f", 16, kernel_shape=[2, 2])
    both = made.layer("Concat", [f, f], "both", 14, axis=1)
    made.nodes.append(helper.make_node("Flatten", [both], ["flat"]))
    flat = made.quantised("flat", 12)
    return made.model(made.weighted("Gemm", flat, "y", (5, 144), transB=1))


def largest_difference(graph: Graph, x: Array, expected: Array) -> float:
    """Return how many steps of the output a graph is from what is expected."""
    (got,) = execute(graph, {"x": x}).values()
    return float(np.abs(got - expected).max() / (8 / 65536))


@given(st.integers(0, 10_000), FORMS)
@settings(max_examples=12, deadline=None)
def test_networks_are_integers_throughout(seed: int, form: tuple[bool, str, bool]) -> None:
    """Nothing but the ends is a float, and outputs are onnxruntime's, or a step from them."""
    unsigned, domain, symmetric = form
    model = network(seed, unsigned=unsigned, domain=domain, symmetric=symmetric)
    graph = from_onnx(model).graph
    assert graph is not None
    floats = [t for node in graph.nodes for t in node.outputs if t.dtype is DType.FLOAT32]
    assert len(floats) <= 2 and graph.outputs[0] in floats
    x = np.random.default_rng(seed).uniform(-2, 2, SHAPE).astype(np.float32)
    (expected,) = run_onnxruntime(with_inferred_outputs(model), {"x": x})
    assert largest_difference(graph, x, expected) <= 2


def test_fixed_point_is_for_symmetric_ones() -> None:
    """TFLite's int16 has the zero point 0: layers that have another stay as they are."""
    x = np.random.default_rng(3).uniform(-2, 2, SHAPE).astype(np.float32)
    for symmetric in (True, False):
        model = network(3, unsigned=False, domain="", symmetric=symmetric)
        graph = from_onnx(model).graph
        assert graph is not None
        made = ChooseNumerics(Numerics.TFLM)(graph)
        weighted = [node for node in made.nodes if len(node.inputs) == 3]
        assert len(weighted) == 3
        assert all(rescales_in_float(node) is not symmetric for node in weighted)
        (expected,) = run_onnxruntime(with_inferred_outputs(model), {"x": x})
        assert largest_difference(made, x, expected) < 16


@pytest.mark.parametrize("target", ["c", "c -mcpu=cortex-m4"])
def test_compiled_networks(tmp_path: Path, target: str) -> None:
    """Kernels of blocks, and the formulas of all others, give what the graph gives."""
    graphs = []
    for seed, unsigned in ((1, False), (2, True)):
        model = network(seed, unsigned=unsigned, domain="", symmetric=False)
        graph = from_onnx(model).graph
        assert graph is not None
        graphs.append(graph)
    config = CompilationConfig(targets=target)
    artifacts = [
        build(IRModule(graph=graph), config.with_(module_name=f"wide_{number}"))
        for number, graph in enumerate(graphs)
    ]
    x = np.random.default_rng(4).uniform(-2, 2, SHAPE).astype(np.float32)
    for graph, model_in_c in zip(graphs, load_batch(artifacts, tmp_path), strict=True):
        (expected,) = execute(graph, {"x": x}).values()
        (got,) = model_in_c.run({graph.inputs[0].name: x}).values()
        np.testing.assert_array_equal(got, expected)
