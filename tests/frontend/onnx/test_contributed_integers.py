"""Operators on integers that onnxruntime adds to ONNX, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from microtir.frontend import from_onnx
from microtir.rewrite.reference import execute
from tests.support.onnx_models import Array, model_of, run_onnxruntime, typed

pytestmark = pytest.mark.tools

MICROSOFT = "com.microsoft"
SHAPE = (1, 3, 4, 5)
SCALES = {"x": 0.02, "z": 0.05, "y": 0.03}


def between_conversions(
    operator: str, operands: list[str], dtype: Any, **attributes: Any
) -> tuple[bytes, dict[str, Array]]:
    """Return a model of a node between conversions, and its inputs."""
    constants: dict[str, Array] = {}
    for name, scale in SCALES.items():
        constants[f"{name}_scale"] = np.array(scale, np.float32)
        constants[f"{name}_zero"] = np.array(3, dtype)
    ports = dict.fromkeys(name for name in operands if name in SCALES and name != "y")
    nodes = [
        helper.make_node("QuantizeLinear", [name, f"{name}_scale", f"{name}_zero"], [f"{name}_q"])
        for name in ports
    ]
    inputs = [
        part
        for name in operands
        for part in ([f"{name}_q"] if name in ports else []) + [f"{name}_scale", f"{name}_zero"]
    ]
    nodes.append(helper.make_node(operator, inputs, ["y_q"], domain=MICROSOFT, **attributes))
    nodes.append(helper.make_node("DequantizeLinear", ["y_q", "y_scale", "y_zero"], ["y"]))
    rng = np.random.default_rng(5)
    values = {name: rng.uniform(-2, 2, SHAPE).astype(np.float32) for name in ports}
    result = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    given = [typed(name, value) for name, value in values.items()]
    return model_of(nodes, given, result, constants, domains={MICROSOFT: 1}), values


def computed(model: bytes, values: dict[str, Array]) -> Array:
    """Return the only output of a model as its graph has it."""
    graph = from_onnx(model).graph
    assert graph is not None
    (got,) = execute(graph, values).values()
    return got


@pytest.mark.parametrize("dtype", [np.int8, np.uint8], ids=["int8", "uint8"])
@pytest.mark.parametrize(
    ("operator", "operands", "attributes"),
    [
        ("QLinearConcat", ["y", "x", "z"], {"axis": 1}),
        ("QLinearLeakyRelu", ["x", "y"], {"alpha": 0.3}),
    ],
)
def test_results_are_a_step_apart_at_most(
    operator: str, operands: list[str], attributes: dict[str, Any], dtype: Any
) -> None:
    """Each is what it says of the numbers, rounded once; onnxruntime rounds its own way."""
    model, values = between_conversions(operator, operands, dtype, **attributes)
    (want,), got = run_onnxruntime(model, values), computed(model, values)
    assert got.shape == want.shape and np.ptp(want) > 10 * SCALES["y"]
    np.testing.assert_allclose(got, want, rtol=0, atol=1.01 * SCALES["y"])
    assert np.mean(np.abs(got - want) < SCALES["y"] / 2) > 0.9


@pytest.mark.parametrize("dtype", [np.int8, np.uint8], ids=["int8", "uint8"])
@pytest.mark.parametrize(("axes", "keepdims"), [([2, 3], 1), ([1], 0)])
def test_means_are_those_of_the_stored_numbers(axes: list[int], keepdims: int, dtype: Any) -> None:
    """QLinearReduceMean, for which onnxruntime has no kernel: its definition, to half a step."""
    attributes = {"axes": axes, "keepdims": keepdims}
    model, values = between_conversions("QLinearReduceMean", ["x", "y"], dtype, **attributes)
    limits = np.iinfo(dtype)
    stored = np.clip(np.rint(values["x"] / np.float32(SCALES["x"])) + 3, limits.min, limits.max)
    mean = ((stored - 3) * SCALES["x"]).mean(axis=tuple(axes), keepdims=bool(keepdims))
    least = SCALES["y"] * (limits.min - 3)
    got = computed(model, values)
    assert got.shape == mean.shape and np.ptp(mean) > SCALES["y"]
    np.testing.assert_allclose(got, np.maximum(mean, least), rtol=0, atol=0.51 * SCALES["y"])


@pytest.mark.parametrize("has_bias", [False, True], ids=["plain", "bias"])
def test_products_of_integers_as_floats(has_bias: bool) -> None:
    """MatMulIntegerToFloat: sums of products times both scales, and a bias of floats."""
    rng = np.random.default_rng(6)
    x = rng.uniform(-2, 2, (3, 8)).astype(np.float32)
    constants: dict[str, Array] = {
        "w": rng.integers(-127, 128, (8, 5)).astype(np.int8),
        "w_scale": np.array(0.01, np.float32),
        "w_zero": np.array(0, np.int8),
        "bias": rng.uniform(-1, 1, 5).astype(np.float32),
    }
    inputs = ["x_q", "w", "x_scale", "w_scale", "x_zero", "w_zero", *(["bias"] * has_bias)]
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["x_q", "x_scale", "x_zero"]),
        helper.make_node("MatMulIntegerToFloat", inputs, ["y"], domain=MICROSOFT),
    ]
    if not has_bias:
        del constants["bias"]
    result = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    model = model_of(nodes, [typed("x", x)], result, constants, domains={MICROSOFT: 1})
    (want,) = run_onnxruntime(model, {"x": x})
    np.testing.assert_allclose(computed(model, {"x": x}), want, rtol=1e-4, atol=1e-4)
