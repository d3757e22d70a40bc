from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import microtir
from examples.digits import demo, quantize, train
from examples.digits.network import (
    CLASSES,
    NETWORK,
    accuracy,
    activations,
    layer_inputs,
    of_layer,
)
from microtir.report.collect import describe
from tests.support.tflm import run_tflm

FOLDER = Path(quantize.__file__).parent


@pytest.fixture(scope="module")
def data() -> train.Digits:
    """The data set, split."""
    return train.load_data()


@pytest.fixture(scope="module")
def weights() -> dict[str, npt.NDArray[np.float32]]:
    """The trained weights of the repository."""
    return quantize.load_weights(train.WEIGHTS_FILE)


@pytest.fixture(scope="module")
def made(data: train.Digits, weights: dict[str, npt.NDArray[np.float32]]) -> quantize.Result:
    """What those weights quantise to."""
    return quantize.quantize(weights, data)


@pytest.fixture(scope="module")
def test_set() -> dict[str, npt.NDArray[Any]]:
    """The test set of the repository with its golden outputs."""
    with np.load(FOLDER / quantize.TEST_SET, allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def test_models_come_from_the_weights(made: quantize.Result) -> None:
    """The stored weights and training images give the stored models, byte for byte."""
    assert made.int8 == (FOLDER / quantize.INT8_MODEL).read_bytes()
    assert made.float32 == (FOLDER / quantize.FLOAT_MODEL).read_bytes()


def test_test_set_is_the_held_out_part(
    made: quantize.Result, data: train.Digits, test_set: dict[str, npt.NDArray[Any]]
) -> None:
    """The stored test set is the quantised part of the data that training never saw."""
    assert np.array_equal(test_set["inputs"], made.test_inputs)
    assert np.array_equal(test_set["labels"], data.test_labels)
    assert len(data.train_labels) + len(data.test_labels) == 1797


def test_golden_outputs_and_figures_are_measured(
    made: quantize.Result,
    data: train.Digits,
    weights: dict[str, npt.NDArray[np.float32]],
    test_set: dict[str, npt.NDArray[Any]],
) -> None:
    """tflite-micro gives the stored outputs, and its accuracies are those of metrics.json."""
    metrics, outputs = quantize.measure(made, data)
    assert np.array_equal(outputs, test_set["outputs"])
    recorded = json.loads((FOLDER / quantize.METRICS).read_text(encoding="utf-8"))
    assert recorded.pop("parameters") == sum(value.size for value in weights.values())
    assert recorded == metrics


def test_accuracy_is_good_enough() -> None:
    """At least 97 % in float on the test set, and int8 within one point of that."""
    recorded = json.loads((FOLDER / quantize.METRICS).read_text(encoding="utf-8"))
    assert recorded["float_accuracy"] >= 0.97
    assert abs(recorded["float_accuracy"] - recorded["int8_accuracy"]) <= 0.01


def test_float_model_computes_the_network(
    made: quantize.Result, data: train.Digits, weights: dict[str, npt.NDArray[np.float32]]
) -> None:
    """The float model's probabilities are the softmax of what the numpy layers compute."""
    images = data.test_images[:5]
    parameters = {key: value.astype(np.float64) for key, value in weights.items()}
    logits = activations(images, parameters)[-1]
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    expected = powers / powers.sum(axis=1, keepdims=True)
    for image, row in zip(images, expected, strict=True):
        (result,) = run_tflm(made.float32, image[None].astype(np.float32))
        np.testing.assert_allclose(result[0], row, atol=1e-6)


def _graph(model: bytes) -> Any:
    import tflite

    return tflite.Model.GetRootAs(model).Subgraphs(0)


def _operators(model: bytes) -> list[str]:
    """Names of the operators of a model in order."""
    import tflite

    root = tflite.Model.GetRootAs(model)
    graph = root.Subgraphs(0)
    names = {value: key for key, value in vars(tflite.BuiltinOperator).items()}
    return [
        names[root.OperatorCodes(graph.Operators(i).OpcodeIndex()).BuiltinCode()]
        for i in range(graph.OperatorsLength())
    ]


def test_int8_model_follows_the_rules_of_tflite(made: quantize.Result) -> None:
    """Scales, zero points and axes are what a TFLite converter would write."""
    import tflite

    graph = _graph(made.int8)
    names = _operators(made.int8)
    assert names == _operators(made.float32)
    assert set(names) == {
        "CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D", "AVERAGE_POOL_2D", "RESHAPE",
        "FULLY_CONNECTED", "SOFTMAX",
    }  # fmt: skip
    for index, name in enumerate(names):
        operator = graph.Operators(index)
        tensors = [graph.Tensors(i) for i in operator.InputsAsNumpy()]
        output = graph.Tensors(operator.Outputs(0))
        given, gave = tensors[0].Quantization(), output.Quantization()
        assert output.Type() == tflite.TensorType.INT8
        if name in ("MAX_POOL_2D", "AVERAGE_POOL_2D", "RESHAPE"):
            assert (gave.Scale(0), gave.ZeroPoint(0)) == (given.Scale(0), given.ZeroPoint(0))
        elif name == "SOFTMAX":
            assert (gave.Scale(0), gave.ZeroPoint(0)) == (1 / 256, -128)
        else:
            weights, bias = (tensor.Quantization() for tensor in tensors[1:])
            axis = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 0}[name]
            channels = 1 if name == "FULLY_CONNECTED" else output.ShapeAsNumpy()[-1]
            assert (weights.ScaleLength(), weights.QuantizedDimension()) == (channels, axis)
            assert not weights.ZeroPointAsNumpy().any()
            products = np.float32(given.Scale(0)) * weights.ScaleAsNumpy()
            assert bias.ScaleAsNumpy().tolist() == products.tolist()
            assert tensors[2].Type() == tflite.TensorType.INT32


def test_one_padding_is_asymmetric(made: quantize.Result) -> None:
    """The model keeps a SAME convolution with more padding behind the image than before it."""
    import tflite

    graph = _graph(made.int8)
    operator = graph.Operators(_operators(made.int8).index("DEPTHWISE_CONV_2D"))
    options = tflite.DepthwiseConv2DOptions()
    options.Init(operator.BuiltinOptions().Bytes, operator.BuiltinOptions().Pos)
    extent, kernel = (graph.Tensors(operator.Inputs(i)).Shape(1) for i in range(2))
    rows = graph.Tensors(operator.Outputs(0)).Shape(1)
    assert options.Padding() == tflite.Padding.SAME
    assert ((rows - 1) * options.StrideH() + kernel - extent) % 2 == 1


@pytest.mark.parametrize("index", range(len(NETWORK)))
def test_gradient_is_the_slope(index: int) -> None:
    """Each layer's gradients are the difference quotients of its output."""
    rng = np.random.default_rng(index)
    layer, shape = list(layer_inputs(NETWORK))[index]
    own = of_layer(train.initial_parameters(rng), layer)
    x = rng.normal(size=(2, *shape))
    y = layer.forward(x, own)
    assert y.shape[1:] == layer.output_shape(shape)
    dy = rng.normal(size=y.shape)
    dx, slopes = layer.backward(x, y, dy, own)
    assert slopes.keys() == own.keys()
    for key, value, slope in [("x", x, dx), *((key, own[key], slopes[key]) for key in own)]:
        direction = rng.normal(size=value.shape)
        step = 1e-7
        moved = {**own, key: value + step * direction}
        quotient = ((layer.forward(moved.get("x", x), moved) - y) / step * dy).sum()
        assert quotient == pytest.approx((slope * direction).sum(), rel=1e-4, abs=1e-6), key


def test_training_is_repeatable_and_learns(data: train.Digits) -> None:
    """One seed gives one set of weights, another seed others; both beat guessing."""
    part = train.Digits(
        data.train_images[:256], data.train_labels[:256], data.test_images, data.test_labels
    )
    schedule = train.Schedule(epochs=12)
    first, second = (train.train(part, schedule, seed=1) for _ in range(2))
    other = train.train(part, schedule, seed=2)
    assert all(np.array_equal(first[key], second[key]) for key in first)
    assert not np.array_equal(first["conv1/weights"], other["conv1/weights"])
    for weights in (first, other):
        parameters = {key: value.astype(np.float64) for key, value in weights.items()}
        scores = activations(part.train_images, parameters)[-1]
        assert accuracy(scores, part.train_labels) > 3 / CLASSES


def test_script_writes_the_files_of_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Running quantize.py gives the four files that the repository holds."""
    monkeypatch.setattr("sys.argv", ["quantize", "--output", str(tmp_path)])
    quantize.main()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["digits_float.tflite", "digits_int8.tflite", "digits_test.npz", "metrics.json"]
    for name in names:
        old, new = FOLDER / name, tmp_path / name
        if name == quantize.TEST_SET:
            with np.load(old) as expected, np.load(new) as written:
                assert all(np.array_equal(expected[key], written[key]) for key in expected.files)
        else:
            assert new.read_bytes() == old.read_bytes(), name
    assert "int8_accuracy" in capsys.readouterr().out


def test_demo_without_headers_of_a_c_library(tmp_path: Path) -> None:
    """`make demo` ended in a traceback where gcc had no stdint.h: it is a diagnostic."""
    gcc = tmp_path / "gcc"
    gcc.write_text(f'#!/bin/sh\nexec {shutil.which("gcc")} -nostdinc "$@"\n')
    gcc.chmod(0o755)
    done = subprocess.run(
        [sys.executable, str(FOLDER / "demo.py"), "--output", str(tmp_path / "out")],
        env={**os.environ, "CC": str(gcc)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert "no <stdint.h>" in done.stderr and "Traceback" not in done.stderr


def test_demo_ends_with_what_was_made_and_what_comes_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The end of `make demo` names the core, the RAM, flash and work of a run, and a command."""
    monkeypatch.setattr(sys, "argv", ["demo", "--output", str(tmp_path / "out")])
    assert demo.main() == 0
    said = capsys.readouterr().out
    for name in ("for cortex-m4", "workspace", "instructions  ", "weights  ", "code  ", "next: "):
        assert name in said
    assert "450 of 450 outputs" in said
    config = microtir.CompilationConfig(targets=["c -mcpu=cortex-m4"])
    report = describe(
        microtir.frontend.from_tflite(FOLDER / "digits_int8.tflite").with_configuration(config)
    )
    expected = sum(layer.choice.instructions or 0 for layer in report.layers if layer.choice)
    assert f" {expected} a run" in said
    assert "fit example:digits" in said.splitlines()[-2]
