"""Float layers with int8 weights as LiteRT computes them: numerics 'tflite_ref'."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import microtir
from microtir import CompilationConfig, Target
from microtir.config.enums import Numerics
from microtir.errors import UnsupportedModelError
from microtir.frontend import from_tflite
from microtir.graph.ir import Graph
from microtir.operators.common.tflite_schema import (
    BuiltinOperator,
    Options,
    Padding,
    TfliteActivation,
)
from microtir.operators.convolution.tflite import Conv2DOptions, DepthwiseConv2DOptions
from microtir.operators.dense.tflite import FullyConnectedOptions
from microtir.rewrite.reference import execute, execute_steps
from microtir.rewrite.requests.numerics import ChooseNumerics
from microtir.rewrite.verify import verify
from microtir.writers.tflite import TfliteBuilder
from tests.support.batch import load_batch
from tests.support.c_compilers import STRICT
from tests.support.litert import run_litert, run_litert_steps
from tests.support.operator_cases import HYBRID, generate
from tests.support.recurrent import steps_of
from tests.support.sketch import Shape

Code = BuiltinOperator
LAYERS = (Code.FULLY_CONNECTED, Code.CONV_2D, Code.DEPTHWISE_CONV_2D)
RECURRENT = ("SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM")
CONFIG = CompilationConfig.from_target(Target("c")).with_(numerics="tflite_ref")


@dataclass(frozen=True)
class HybridCase:
    """A model of one layer, and an input."""

    name: str
    model: bytes
    values: npt.NDArray[np.float32]

    def graph(self) -> Graph:
        graph = from_tflite(self.model, name=self.name).graph
        assert graph is not None
        return ChooseNumerics(Numerics.TFLITE_REF)(graph)


def draw(code: BuiltinOperator, seed: int) -> HybridCase:
    """Draw a layer: one scale or one for each channel, several images, some of zeros."""
    rng = np.random.default_rng([seed, int(code)])

    def number(low: int, high: int) -> int:
        return int(rng.integers(low, high + 1))

    batch, activation = number(1, 3), TfliteActivation(number(0, 3))
    options: Options
    shape: Shape
    weights: Shape
    result: Shape
    if code is Code.FULLY_CONNECTED:
        depth, channels = number(1, 40), number(1, 8)
        shape, weights, result = (batch, depth), (channels, depth), (batch, channels)
        options = FullyConnectedOptions(activation, asymmetric_quantize_inputs=number(0, 1) > 0)
    else:
        high, wide, depth = number(3, 8), number(3, 8), number(1, 7)
        taps, (down, along) = (number(1, 3), number(1, 3)), (number(1, 2), number(1, 2))
        is_depthwise = code is Code.DEPTHWISE_CONV_2D
        channels = depth * number(1, 2) if is_depthwise else number(1, 6)
        shape = (batch, high, wide, depth)
        weights = (1, *taps, channels) if is_depthwise else (channels, *taps, depth)
        result = (batch, -(-high // down), -(-wide // along), channels)
        window = (Padding.SAME, along, down)
        options = Conv2DOptions(*window, activation)
        if is_depthwise:
            options = DepthwiseConv2DOptions(*window, channels // depth, activation)
    per_channel = code is Code.DEPTHWISE_CONV_2D or rng.random() < 0.5
    scales = rng.uniform(1e-3, 0.1, channels if per_channel else 1).astype(np.float32).tolist()
    axis = (3 if code is Code.DEPTHWISE_CONV_2D else 0) if per_channel else None
    builder = TfliteBuilder()
    x = builder.tensor("x", shape, np.float32)
    factors = rng.integers(-127, 128, weights).astype(np.int8)
    w = builder.tensor("w", weights, np.int8, factors, scales, [0] * len(scales), axis)
    bias = rng.standard_normal(channels).astype(np.float32)
    b = builder.tensor("b", bias.shape, np.float32, bias)
    y = builder.tensor("y", result, np.float32)
    builder.operator(code, [x, w, b], [y], options)
    spread, shift = rng.choice([0.1, 1.0, 8.0]), rng.choice([0.0, 0.0, 3.0])
    values = (rng.standard_normal(shape) * spread + shift).astype(np.float32)
    if rng.random() < 0.15:
        values[0] = 0.0
    return HybridCase(f"{code.name.lower()}_{seed}", builder.build([x], [y]), values)


@pytest.mark.tools
@pytest.mark.parametrize("code", LAYERS)
def test_layers_equal_litert(code: BuiltinOperator) -> None:
    """Every bit of every float is that of LiteRT's reference kernels."""
    for seed in range(40):
        case = draw(code, seed)
        graph = case.graph()
        verify(graph)
        (actual,) = execute(graph, {"x": case.values}).values()
        (expected,) = run_litert(case.model, case.values)
        np.testing.assert_array_equal(actual, expected, err_msg=case.name)


def test_c_equals_the_meaning(tmp_path: Path) -> None:
    """The C quantises as the meaning does, to the bit, and gives its floats."""
    cases = [draw(code, seed) for code in LAYERS for seed in range(100, 104)]
    artifacts = [
        microtir.build(from_tflite(case.model, name=case.name), CONFIG.with_(module_name=case.name))
        for case in cases
    ]
    for case, model in zip(cases, load_batch(artifacts, tmp_path, flags=STRICT), strict=True):
        expected = execute(case.graph(), {"x": case.values})
        np.testing.assert_array_equal(model.run({"x": case.values})["y"], expected["y"], case.name)


@pytest.mark.tools
@pytest.mark.parametrize("operator", RECURRENT)
def test_sequences_of_recurrent_layers_equal_litert(operator: str) -> None:
    """Over 50 runs, up to the order of sums: inputs and hidden states are quantised in a step."""
    for seed in range(12):
        case = generate(operator, seed, HYBRID)
        graph = ChooseNumerics(Numerics.TFLITE_REF)(case.graph())
        verify(graph)
        steps = steps_of(case)
        (x,), (y,) = graph.arguments, graph.results
        outputs = execute_steps(graph, [{x.name: values} for values in steps])
        expected = run_litert_steps(case.model, [[values] for values in steps])
        for got, (want,) in zip(outputs, expected, strict=True):
            near = 2e-6 * max(1.0, float(np.abs(want).max()))
            np.testing.assert_allclose(got[y.name], want, rtol=0, atol=near, err_msg=case.name)


def test_c_of_recurrent_layers_equals_the_meaning(tmp_path: Path) -> None:
    """One run after the other, loops over steps and states included."""
    cases = [generate(operator, seed, HYBRID) for operator in RECURRENT for seed in range(20, 24)]
    artifacts = [
        microtir.build(from_tflite(case.model, name=case.name), CONFIG.with_(module_name=case.name))
        for case in cases
    ]
    for case, model in zip(cases, load_batch(artifacts, tmp_path, flags=STRICT), strict=True):
        graph = ChooseNumerics(Numerics.TFLITE_REF)(case.graph())
        (x,), (y,) = graph.arguments, graph.results
        steps = [{x.name: values} for values in steps_of(case, 6)]
        for given, expected in zip(steps, execute_steps(graph, steps), strict=True):
            got, want = model.run(given)[y.name], expected[y.name]
            near = 2e-6 * max(1.0, float(np.abs(want).max()))
            np.testing.assert_allclose(got, want, rtol=0, atol=near, err_msg=case.name)


def test_other_numerics_keep_float_layers() -> None:
    """Without the option a hybrid layer multiplies floats by widened weights."""
    graph = from_tflite(draw(Code.CONV_2D, 0).model).graph
    assert graph is not None
    assert ChooseNumerics(Numerics.TFLM)(graph) is graph


def test_missing_scales_are_refused() -> None:
    """A depthwise layer with one scale makes LiteRT read behind it."""
    builder = TfliteBuilder()
    x = builder.tensor("x", (1, 4, 4, 2), np.float32)
    weights = np.ones((1, 2, 2, 2), np.int8)
    w = builder.tensor("w", weights.shape, np.int8, weights, [0.5], [0])
    y = builder.tensor("y", (1, 4, 4, 2), np.float32)
    options = DepthwiseConv2DOptions(Padding.SAME, 1, 1, 1)
    builder.operator(Code.DEPTHWISE_CONV_2D, [x, w], [y], options)
    module = from_tflite(builder.build([x], [y]))
    with pytest.raises(UnsupportedModelError, match="1 scale for 2 channels"):
        microtir.build(module, CONFIG)
