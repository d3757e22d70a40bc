"""Operators that onnxruntime adds to ONNX, against onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from microtir.frontend import from_onnx
from microtir.rewrite.reference import execute
from tests.support.onnx_models import Array, model_of, run_onnxruntime, typed

pytestmark = pytest.mark.tools

MICROSOFT = "com.microsoft"
LINE, IMAGE = (2, 3, 8), (1, 2, 6, 5)


def drawn(*shape: int, seed: int = 0) -> Array:
    """Return normally distributed values."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def compare(
    operator: str,
    x: Array,
    constants: Mapping[str, Array | None] | None = None,
    *,
    domain: str = MICROSOFT,
    opset: int = 17,
    outputs: tuple[str, ...] = ("y",),
    tolerance: float = 1e-5,
    **attributes: Any,
) -> None:
    """The graph computes what onnxruntime does; a constant that is None is left out."""
    held = {name: value for name, value in (constants or {}).items() if value is not None}
    names = [name if name in held else "" for name in constants or {}]
    node = helper.make_node(operator, ["x", *names], list(outputs), domain=domain, **attributes)
    results = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs if name
    ]
    model = model_of([node], [typed("x", x)], results, held, opset, {MICROSOFT: 1})
    want = run_onnxruntime(model, {"x": x})
    graph = from_onnx(model).graph
    assert graph is not None
    for got, expected in zip(execute(graph, {"x": x}).values(), want, strict=True):
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("operator", "constants", "attributes"),
    [
        ("Gelu", {}, {}),
        ("BiasGelu", {"b": drawn(8, seed=1)}, {}),
        ("FastGelu", {}, {}),
        ("FastGelu", {"b": drawn(8, seed=1)}, {}),
        ("QuickGelu", {}, {}),
        ("QuickGelu", {}, {"alpha": 0.5}),
    ],
)
def test_activations(
    operator: str, constants: dict[str, Array], attributes: dict[str, Any]
) -> None:
    """GELU in all forms."""
    compare(operator, 2 * drawn(*LINE), constants, **attributes)


@pytest.mark.parametrize(
    ("activation", "numbers"),
    [
        ("Relu", ()), ("Tanh", ()), ("Sigmoid", ()), ("LeakyRelu", (0.2,)), ("Clip", (-0.5, 0.75)),
        ("HardSigmoid", (0.3, 0.4)),
    ],
)  # fmt: skip
def test_fused_layers(activation: str, numbers: tuple[float, ...]) -> None:
    """A function of a layer's result, by name, with its numbers."""
    extra: dict[str, Any] = {"activation_params": list(numbers)} if numbers else {}
    constants = {"w": drawn(4, 2, 3, 3, seed=1), "b": drawn(4, seed=2)}
    compare("FusedConv", drawn(*IMAGE), constants, activation=activation, pads=[1] * 4, **extra)
    named: dict[str, Any] = dict(
        zip(("activation_alpha", "activation_beta"), numbers, strict=False)
    )
    if activation != "Clip":
        matrix = {"w": drawn(6, 8, seed=1), "b": drawn(6, seed=2)}
        x = drawn(3, 8)
        compare("FusedGemm", x, matrix, activation=activation, transB=1, alpha=0.5, **named)


def test_a_layer_with_a_term() -> None:
    """FusedConv adds its fourth input before the function."""
    constants = {"w": drawn(4, 2, 3, 3, seed=1), "b": None, "z": drawn(1, 4, 4, 3, seed=2)}
    compare("FusedConv", drawn(*IMAGE), constants, activation="Relu")


@pytest.mark.parametrize(
    ("x", "w", "attributes"),
    [
        ((3, 4), (4, 5), {"alpha": 0.25}),
        ((4, 3), (5, 4), {"transA": 1, "transB": 1}),
        ((2, 3, 4), (2, 5, 4), {"transB": 1, "alpha": 2.0}),
        ((3, 2, 4), (2, 4, 5), {"transBatchA": 1}),
        ((4, 2, 3), (4, 2, 5), {"transA": 1, "transBatchA": 1, "transBatchB": 1}),
        ((4, 2, 6, 3), (2, 6, 4, 5), {"transA": 1, "transBatchA": 1}),
    ],
)
def test_fused_products(x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any]) -> None:
    """Products of matrices whose axes are exchanged, the batch's among them."""
    compare("FusedMatMul", drawn(*x), {"w": drawn(*w, seed=1)}, **attributes)
    if not any(name.startswith("transBatch") for name in attributes):
        compare("TransposeMatMul", drawn(*x), {"w": drawn(*w, seed=1)}, **attributes)


@pytest.mark.parametrize("has_beta", [False, True])
@pytest.mark.parametrize("has_bias", [False, True])
def test_skips(has_beta: bool, has_bias: bool) -> None:
    """SkipLayerNormalization gives the normalised sum, and the sum."""
    constants = {
        "s": drawn(*LINE, seed=1), "g": drawn(8, seed=2),
        "b": drawn(8, seed=3) if has_beta else None, "c": drawn(8, seed=4) if has_bias else None,
    }  # fmt: skip
    while constants and [*constants.values()][-1] is None:
        constants.popitem()
    compare("SkipLayerNormalization", drawn(*LINE), constants, outputs=("y", "", "", "sum"))


@pytest.mark.parametrize("opset", [9, 13, 16])
def test_layer_normalization_before_its_operator_set(opset: int) -> None:
    """Onnxruntime has LayerNormalization in ONNX's own domain from the first operator set on."""
    constants = {"g": drawn(8, seed=2), "b": drawn(8, seed=3)}
    compare("LayerNormalization", drawn(*LINE), constants, domain="", opset=opset, axis=-1)
    mean = ("y", "mean", "inverse")
    compare("LayerNormalization", drawn(*LINE), constants, domain="", opset=opset, outputs=mean)


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("Affine", {"alpha": 2.0, "beta": -1.0}),
        ("ParametricSoftplus", {"alpha": 2.0, "beta": 0.5}),
        ("ScaledTanh", {"alpha": 2.0, "beta": 0.5}),
        ("Scale", {"scale": 3.0}),
        ("ThresholdedRelu", {"alpha": 0.5}),
        ("ImageScaler", {"scale": 2.0, "bias": [1.0, -1.0]}),
        ("Crop", {"border": [1, 2, 0, 1]}),
        ("Crop", {"border": [1, 2, 0, 1], "scale": [2, 3]}),
        ("MeanVarianceNormalization", {"across_channels": 1, "normalize_variance": 1}),
        ("MeanVarianceNormalization", {"across_channels": 0, "normalize_variance": 0}),
    ],
)
def test_operators_that_onnx_gave_up(operator: str, attributes: dict[str, Any]) -> None:
    """What onnxruntime still runs of ONNX's first operators."""
    compare(operator, drawn(*IMAGE), domain="", opset=8, **attributes)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("has_channels", [False, True])
def test_products_of_integers(dtype: Any, has_channels: bool) -> None:
    """DynamicQuantizeMatMul, with one scale and zero point or one of each column."""
    ends = np.iinfo(dtype)
    rng = np.random.default_rng(1)
    count = 5 if has_channels else 1
    constants = {
        "w": rng.integers(ends.min, ends.max, (8, 5), dtype, endpoint=True),
        "s": rng.uniform(0.01, 0.1, count).astype(np.float32),
        "z": rng.integers(0, 3, count).astype(dtype),
        "b": drawn(5, seed=2),
    }  # fmt: skip
    compare("DynamicQuantizeMatMul", drawn(4, 8), constants, tolerance=1e-4)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("has_channels", [False, True])
@pytest.mark.parametrize("steps", [3, 9])
def test_dynamically_quantised_lstm(direction: str, has_channels: bool, steps: int) -> None:
    """Inputs and states are rounded to uint8 in each step, as onnxruntime rounds them."""
    rng = np.random.default_rng(steps)
    ways, size, inputs = 2 if direction == "bidirectional" else 1, 4, 6
    count = (ways, 4 * size) if has_channels else (ways,)
    constants: dict[str, Array | None] = {
        "w": rng.integers(-127, 127, (ways, inputs, 4 * size), np.int8),
        "r": rng.integers(-127, 127, (ways, size, 4 * size), np.int8),
        "b": rng.standard_normal((ways, 8 * size)).astype(np.float32),
        "lengths": None, "h": None, "c": None, "p": None,
        "ws": rng.uniform(0.005, 0.01, count).astype(np.float32), "wz": np.zeros(count, np.int8),
        "rs": rng.uniform(0.005, 0.01, count).astype(np.float32), "rz": np.zeros(count, np.int8),
    }  # fmt: skip
    compare(
        "DynamicQuantizeLSTM", drawn(steps, 1, inputs), constants, outputs=("y", "last", "cell"),
        hidden_size=size, direction=direction, tolerance=1e-5,
    )  # fmt: skip
