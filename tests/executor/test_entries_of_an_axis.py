"""A range for a dimension behind one of 1: as many tokens are computed as a run is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import microtir
from microtir import CompilationConfig, Executor
from microtir.errors import UnsupportedModelError
from microtir.frontend import from_onnx
from tests.support.command import Command
from tests.support.counted_runs import UNTOUCHED, CountedRuns
from tests.support.onnx_models import Array, model_of, run_onnxruntime, typed

pytestmark = pytest.mark.tools

MOST, WIDTH, TOKENS = 5, 6, 7
COUNTED = CompilationConfig(
    targets="c", module_name="net", executor=Executor("aot", {"batch-count": True})
)
RNG = np.random.default_rng(3)


def floats(*shape: int) -> Array:
    """Random numbers."""
    return RNG.standard_normal(shape).astype(np.float32)


def of_tokens() -> bytes:
    """An embedding and a layer of rows between residuals: what a transformer has but attention."""
    constants = {
        "table": floats(TOKENS, WIDTH),
        "scale": floats(WIDTH),
        "shift": floats(WIDTH),
        "wide": floats(WIDTH, 9),
        "bias": floats(9),
        "narrow": floats(WIDTH, 9, 1),
        "to_heads": np.array([0, -1, 2, 3]),
    }
    make = helper.make_node
    nodes = [
        make("Gather", ["table", "ids"], ["embedded"]),
        make("Add", ["x", "embedded"], ["sum"]),
        make("LayerNormalization", ["sum", "scale", "shift"], ["rows"], axis=-1),
        make("MatMul", ["rows", "wide"], ["more"]),
        make("Add", ["more", "bias"], ["biased"]),
        make("Gelu", ["biased"], ["active"]),
        make("Transpose", ["active"], ["channels"], perm=[0, 2, 1]),
        make("Conv", ["channels", "narrow"], ["convolved"]),
        make("Transpose", ["convolved"], ["less"], perm=[0, 2, 1]),
        make("Add", ["less", "sum"], ["out"]),
        make("Softmax", ["out"], ["y"], axis=-1),
        make("ArgMax", ["out"], ["best"], axis=2, keepdims=0),
        make("Reshape", ["out", "to_heads"], ["heads"]),
        make("Softmax", ["heads"], ["top"], axis=-1),
    ]
    inputs = [typed("x", (1, "tokens", WIDTH)), typed("ids", ("batch", "tokens"), np.int64)]
    outputs = [
        typed("y", (1, "tokens", WIDTH)),
        typed("best", (1, "tokens"), np.int64),
        typed("top", (1, "tokens", 2, 3)),
    ]
    return model_of(nodes, inputs, outputs, constants, opset=20)


def test_a_run_computes_the_first_tokens(tmp_path: Path) -> None:
    """They are what onnxruntime gives so many, and no others are written."""
    model = of_tokens()
    artifact = microtir.build(from_onnx(model, dims={"tokens": range(1, MOST + 1)}), COUNTED)
    net = CountedRuns(artifact, tmp_path)
    assert "dimension 1 of x has, 1 to 5. The first" in (tmp_path / "net.h").read_text()
    inputs = {"x": floats(1, MOST, WIDTH), "ids": RNG.integers(0, TOKENS, (1, MOST))}
    for count in (1, 3, MOST):
        status, made = net.run(inputs, count)
        some = {name: np.ascontiguousarray(array[:, :count]) for name, array in inputs.items()}
        assert status == 0
        for expected, values in zip(run_onnxruntime(model, some), made.values(), strict=True):
            np.testing.assert_allclose(values[:, :count], expected, 1e-5, 1e-6)
            assert (values[:, count:] == UNTOUCHED).all()
    assert net.run(inputs, MOST + 1)[0] == net.run(inputs, 0)[0] == -3


def test_layers_of_integers_are_those_of_rows() -> None:
    """Between conversions, too; all entries are onnxruntime's."""
    make = helper.make_node
    nodes = [
        make("QuantizeLinear", ["x", "sx", "zero"], ["q"]),
        make("DequantizeLinear", ["q", "sx", "zero"], ["dq"]),
        make("DequantizeLinear", ["w", "sw", "none"], ["dw"]),
        make("MatMul", ["dq", "dw"], ["product"]),
        make("QuantizeLinear", ["product", "sy", "zero"], ["qy"]),
        make("DequantizeLinear", ["qy", "sy", "zero"], ["y"]),
    ]
    constants: dict[str, Any] = {
        "w": RNG.integers(-127, 128, (WIDTH, 4)).astype(np.int8),
        "zero": np.int8(3),
        "none": np.int8(0),
        **{name: np.float32(scale) for name, scale in (("sx", 0.03), ("sw", 0.01), ("sy", 0.05))},
    }
    model = model_of(nodes, [typed("x", (1, "tokens", WIDTH))], ["y"], constants, opset=13)
    config = COUNTED.with_(numerics="onnxruntime")
    artifact = microtir.build(from_onnx(model, dims={"tokens": range(1, MOST + 1)}), config)
    x = floats(1, MOST, WIDTH)
    expected = run_onnxruntime(model, {"x": x})[0]
    np.testing.assert_array_equal(microtir.host.load(artifact).run({"x": x})["y"], expected)


MIXING = {
    "attention": (
        [
            helper.make_node("Transpose", ["x"], ["keys"], perm=[0, 2, 1]),
            helper.make_node("MatMul", ["x", "keys"], ["y"]),
        ],
        "operator 1 MatMul, batch-count",
    ),
    "softmax": ([helper.make_node("Softmax", ["x"], ["y"], axis=1)], "operator 0 Softmax, batch-"),
    "convolution": (
        [
            helper.make_node("Transpose", ["x"], ["channels"], perm=[0, 2, 1]),
            helper.make_node("Conv", ["channels", "w"], ["y"], pads=[1, 1]),
        ],
        "operator 1 Conv, batch-count",
    ),
    "recurrent": (
        [
            helper.make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2]),
            helper.make_node("LSTM", ["steps", "gates", "again"], ["y"], hidden_size=3),
        ],
        "operator 1 LSTM, batch-count",
    ),
}


@pytest.mark.parametrize("what", MIXING)
def test_what_mixes_entries_is_named(what: str) -> None:
    """Nothing else is in the way of these models."""
    nodes, where = MIXING[what]
    constants = {"w": floats(4, WIDTH, 3), "gates": floats(1, 12, WIDTH), "again": floats(1, 12, 3)}
    model = model_of(nodes, [typed("x", (1, "tokens", WIDTH))], ["y"], constants, opset=13)
    module = from_onnx(model, dims={"tokens": range(1, MOST + 1)})
    with pytest.raises(UnsupportedModelError, match="cannot be computed one by one") as caught:
        microtir.build(module, COUNTED)
    assert where in str(caught.value)


def test_the_command_line(microtir: Command, tmp_path: Path) -> None:
    """`verify` compares all entries; shapes say the same as the name of a dimension."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    file = tmp_path / "rows.onnx"
    file.write_bytes(
        model_of(nodes, [typed("x", (1, "tokens", WIDTH))], ["y"], {"w": floats(WIDTH, 2)})
    )
    shapes = ("--input-shapes", f"x:[1,1..{MOST},{WIDTH}]")
    verified = microtir("verify", str(file), *shapes, "--samples", "2")
    assert verified.status == 0, verified.err
    config = microtir("verify", f"{file}#tokens=1..{MOST}", "--dump-config")
    assert '"batch-count": true' in config.out
