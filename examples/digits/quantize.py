"""Quantise the trained digits network and write it as TFLite.

    python -m examples.digits.quantize

Writes an int8 and a float32 model, the test set with the outputs of the int8 model as tflite-micro
computes them, and the measured figures.  The rules are TFLite's: activations int8 with a zero
point, weights symmetric int8 with a scale for each output channel (one scale for dense layers),
int32 biases at the scale of input times weights, pooling in the scale of its input, softmax at
1/256 from -128.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from examples.digits.network import (
    CLASSES,
    INPUT_SHAPE,
    NETWORK,
    Array,
    Conv2D,
    Dense,
    DepthwiseConv2D,
    Flatten,
    Layer,
    MaxPool2D,
    Pool2D,
    accuracy,
    activations,
    layer_inputs,
    of_layer,
)
from examples.digits.train import WEIGHTS_FILE, Digits, load_data
from microtir.operators.common.tflite_schema import BuiltinOperator, Padding, TfliteActivation
from microtir.operators.convolution.tflite import Conv2DOptions, DepthwiseConv2DOptions
from microtir.operators.dense.tflite import FullyConnectedOptions
from microtir.operators.movement.tflite import ReshapeOptions
from microtir.operators.pooling.tflite import Pool2DOptions
from microtir.operators.softmax.tflite import SoftmaxOptions
from microtir.writers.tflite import TfliteBuilder

FOLDER = Path(__file__).parent
INT8_MODEL = "digits_int8.tflite"
FLOAT_MODEL = "digits_float.tflite"
TEST_SET = "digits_test.npz"
METRICS = "metrics.json"

RANGE_GRID = 2.0**-10
Int8: TypeAlias = npt.NDArray[np.int8]
Weights: TypeAlias = Mapping[str, npt.NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Scale:
    """Quantisation of a tensor: real = scale * (stored - zero_point)."""

    scale: npt.NDArray[np.float32]
    zero_point: int = 0
    axis: int | None = None

    def quantize(self, real: npt.NDArray[np.floating[Any]]) -> Int8:
        """Return nearest stored values, limited to int8."""
        stored = np.rint(real / self.scale.astype(np.float64)) + self.zero_point
        result: Int8 = np.clip(stored, -128, 127).astype(np.int8)
        return result


def activation_scale(low: float, high: float) -> Scale:
    """Return scale of an activation whose values lie between `low` and `high`.

    The range is widened to a coarse grid first: the last bit of a calibrated value depends on the
    machine's linear algebra library, the file must not.
    """
    low = min(np.floor(low / RANGE_GRID) * RANGE_GRID, 0.0)
    high = max(np.ceil(high / RANGE_GRID) * RANGE_GRID, 0.0)
    scale = np.float32((high - low) / 255)
    return Scale(np.array([scale]), int(np.rint(-128 - low / scale)))


def weight_scale(weights: npt.NDArray[np.float32], axis: int | None) -> Scale:
    """Return a symmetric scale from -127 to 127: one per slice along `axis`, or one in all."""
    others = tuple(i for i in range(weights.ndim) if i != axis)
    largest = np.abs(weights).max(axis=others if axis is not None else None)
    return Scale(np.atleast_1d(largest.astype(np.float64) / 127).astype(np.float32), axis=axis)


def calibrate(weights: Weights, images: Array) -> list[Scale]:
    """Return scales of the input and of every layer's output, from the values seen on `images`."""
    parameters = {key: value.astype(np.float64) for key, value in weights.items()}
    values = activations(images, parameters)
    scales = [activation_scale(0.0, 1.0)]
    for layer, output in zip(NETWORK, values[1:], strict=True):
        keeps = isinstance(layer, Pool2D | Flatten)
        seen = activation_scale(float(output.min()), float(output.max()))
        scales.append(scales[-1] if keeps else seen)
    return scales


def float_model(weights: Weights) -> bytes:
    """Return the network as a float32 TFLite file."""
    builder = TfliteBuilder("microtir example: handwritten digits, float32")
    current = first = builder.tensor("image", (1, *INPUT_SHAPE), np.float32)
    for layer, shape in layer_inputs(NETWORK):
        own = [
            builder.tensor(f"{layer.name}/{kind}", value.shape, np.float32, value)
            for kind, value in of_layer(weights, layer).items()
        ]
        output = builder.tensor(layer.name, (1, *layer.output_shape(shape)), np.float32)
        _operator(builder, layer, [current, *own, *_shape_operand(builder, layer, shape)], output)
        current = output
    last = builder.tensor("probabilities", (1, CLASSES), np.float32)
    builder.operator(BuiltinOperator.SOFTMAX, [current], [last], SoftmaxOptions(beta=1.0))
    return builder.build([first], [last])


def int8_model(weights: Weights, scales: list[Scale]) -> bytes:
    """Return the network as an int8 TFLite file; `scales` as `calibrate` gives them."""
    builder = TfliteBuilder("microtir example: handwritten digits, int8")
    current = first = _activation(builder, "image", INPUT_SHAPE, scales[0])
    for (layer, shape), given, made in zip(layer_inputs(NETWORK), scales, scales[1:], strict=False):
        own = _quantized_parameters(builder, layer, of_layer(weights, layer), given)
        output = _activation(builder, layer.name, layer.output_shape(shape), made)
        _operator(builder, layer, [current, *own, *_shape_operand(builder, layer, shape)], output)
        current = output
    probability = Scale(np.array([1 / 256], np.float32), -128)
    last = _activation(builder, "probabilities", (CLASSES,), probability)
    builder.operator(BuiltinOperator.SOFTMAX, [current], [last], SoftmaxOptions(beta=1.0))
    return builder.build([first], [last])


def _activation(builder: TfliteBuilder, name: str, shape: tuple[int, ...], scale: Scale) -> int:
    return builder.tensor(name, (1, *shape), np.int8, None, scale.scale, scale.zero_point)


def _quantized_parameters(
    builder: TfliteBuilder, layer: Layer, own: Weights, given: Scale
) -> list[int]:
    """Add weights and bias of a layer whose input is quantised as `given`; nothing if none."""
    if not own:
        return []
    weights = own["weights"]
    axes = {Conv2D: 0, DepthwiseConv2D: 3, Dense: None}
    scale = weight_scale(weights, axes[type(layer)])
    along_channels = (
        scale.scale
        if scale.axis is None
        else scale.scale.reshape([-1 if i == scale.axis else 1 for i in range(weights.ndim)])
    )
    stored = Scale(along_channels).quantize(weights)
    bias_scale = given.scale * scale.scale
    bias = np.rint(own["bias"] / bias_scale.astype(np.float64)).astype(np.int32)
    zeros = np.zeros(len(scale.scale), np.int64)
    bias_axis = None if scale.axis is None else 0
    return [
        builder.tensor(
            f"{layer.name}/weights", stored.shape, np.int8, stored, scale.scale, zeros, scale.axis
        ),
        builder.tensor(
            f"{layer.name}/bias", bias.shape, np.int32, bias, bias_scale, zeros, bias_axis
        ),
    ]


def _shape_operand(builder: TfliteBuilder, layer: Layer, shape: tuple[int, ...]) -> list[int]:
    """Return the second input of a RESHAPE."""
    if not isinstance(layer, Flatten):
        return []
    target = np.array([1, *layer.output_shape(shape)], np.int32)
    return [builder.tensor(f"{layer.name}/shape", target.shape, np.int32, target)]


def _operator(builder: TfliteBuilder, layer: Layer, inputs: list[int], output: int) -> None:
    relu = TfliteActivation.RELU
    if isinstance(layer, Conv2D):
        conv = Conv2DOptions(Padding.SAME, layer.stride, layer.stride, relu)
        builder.operator(BuiltinOperator.CONV_2D, inputs, [output], conv)
    elif isinstance(layer, DepthwiseConv2D):
        depthwise = DepthwiseConv2DOptions(Padding.SAME, layer.stride, layer.stride, 1, relu)
        builder.operator(BuiltinOperator.DEPTHWISE_CONV_2D, inputs, [output], depthwise)
    elif isinstance(layer, Pool2D):
        size = layer.size
        code = (
            BuiltinOperator.MAX_POOL_2D
            if isinstance(layer, MaxPool2D)
            else BuiltinOperator.AVERAGE_POOL_2D
        )
        builder.operator(
            code, inputs, [output], Pool2DOptions(Padding.VALID, size, size, size, size)
        )
    elif isinstance(layer, Dense):
        dense = FullyConnectedOptions(relu if layer.relu else TfliteActivation.NONE)
        builder.operator(BuiltinOperator.FULLY_CONNECTED, inputs, [output], dense)
    else:
        builder.operator(BuiltinOperator.RESHAPE, inputs, [output], ReshapeOptions())


def run_tflite_micro(model: bytes, inputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Run tflite-micro for inputs [samples, 1, 8, 8, 1]; outputs are stacked in the same way."""
    from tflite_micro import runtime

    interpreter = runtime.Interpreter.from_bytes(model, arena_size=1 << 18)
    outputs = []
    for sample in inputs:
        interpreter.set_input(sample, 0)
        interpreter.invoke()
        outputs.append(np.array(interpreter.get_output(0)))
    return np.stack(outputs)


def load_weights(path: Path) -> dict[str, npt.NDArray[np.float32]]:
    """Return the parameters that `train` stored."""
    with np.load(path, allow_pickle=False) as stored:
        return {key: stored[key] for key in stored.files}


@dataclass(frozen=True, slots=True)
class Result:
    """What the quantisation makes out of the trained weights."""

    int8: bytes
    float32: bytes
    test_inputs: Int8
    test_labels: npt.NDArray[np.int64]


def quantize(weights: Weights, data: Digits) -> Result:
    """Return both models and the quantised test set; calibrated on the training images."""
    scales = calibrate(weights, data.train_images)
    inputs = scales[0].quantize(data.test_images)[:, None]
    return Result(int8_model(weights, scales), float_model(weights), inputs, data.test_labels)


def measure(result: Result, data: Digits) -> tuple[dict[str, Any], Int8]:
    """Measure accuracies on the test set with tflite-micro; return the int8 outputs, too."""
    float_inputs = data.test_images.astype(np.float32)[:, None]
    float_outputs = run_tflite_micro(result.float32, float_inputs)
    int8_outputs = run_tflite_micro(result.int8, result.test_inputs)
    labels = result.test_labels
    shapes = list(layer_inputs(NETWORK))
    metrics = {
        "test_images": len(labels),
        "float_accuracy": round(accuracy(float_outputs, labels), 6),
        "int8_accuracy": round(accuracy(int8_outputs, labels), 6),
        "int8_agrees_with_float": round(accuracy(int8_outputs, _classes(float_outputs)), 6),
        "macs": sum(layer.macs(shape) for layer, shape in shapes),
        "int8_model_bytes": len(result.int8),
        "float_model_bytes": len(result.float32),
    }
    return metrics, int8_outputs


def _classes(outputs: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    return np.asarray(outputs.argmax(axis=-1).ravel(), dtype=np.int64)


def main() -> None:
    """Quantise, measure, and store models, test set and figures."""
    parser = argparse.ArgumentParser(description="Quantise the digits network.")
    parser.add_argument("--weights", type=Path, default=WEIGHTS_FILE, help="file from train.py")
    parser.add_argument("--output", type=Path, default=FOLDER, help="folder to write to")
    arguments = parser.parse_args()
    data = load_data()
    weights = load_weights(arguments.weights)
    result = quantize(weights, data)
    metrics, outputs = measure(result, data)
    metrics["parameters"] = sum(value.size for value in weights.values())
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / INT8_MODEL).write_bytes(result.int8)
    (arguments.output / FLOAT_MODEL).write_bytes(result.float32)
    np.savez(
        arguments.output / TEST_SET,
        inputs=result.test_inputs,
        outputs=outputs,
        labels=result.test_labels.astype(np.int8),
    )
    (arguments.output / METRICS).write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf-8")
    for name, value in metrics.items():
        print(f"{name:24} {value}")


if __name__ == "__main__":
    main()
