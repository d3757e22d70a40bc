"""The same networks through TensorFlow's converter, as a function of its own operators."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.quantise.networks import (
    NORM_EPSILON,
    Conv,
    Dense,
    GlobalAverage,
    Layer,
    Network,
    Residual,
)
from benchmarks.quantise.tasks import Array


def converted(network: Network, weights: Sequence[Array], calibration: Array) -> bytes:
    """Return a network as the TFLite file that the converter makes of it, with float ports.

    Args:
        network: its layers.
        weights: in the order of `networks`.
        calibration: samples, channels before rows and columns.
    """
    tensorflow: Any = importlib.import_module("tensorflow")

    samples = channels_last(calibration)

    def model(x: Any) -> Any:
        return _layers(tensorflow, x, network.layers, iter(weights))

    port = tensorflow.TensorSpec((1, *samples.shape[1:]), tensorflow.float32)
    function = tensorflow.function(model, input_signature=[port]).get_concrete_function()
    converter = tensorflow.lite.TFLiteConverter.from_concrete_functions([function])
    converter.optimizations = [tensorflow.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([sample[None]] for sample in samples)
    converter.target_spec.supported_ops = [tensorflow.lite.OpsSet.TFLITE_BUILTINS_INT8]
    return bytes(converter.convert())


def channels_last(x: Array) -> Array:
    """Return images (samples, channels, rows, columns) with their channels last."""
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if x.ndim == 4 else x


def _layers(tensorflow: Any, x: Any, layers: Sequence[Layer], weights: Iterator[Array]) -> Any:
    for layer in layers:
        match layer:
            case Conv():
                x = _conv(tensorflow, x, layer, weights)
            case Residual(layers=inner):
                x = tensorflow.nn.relu(_layers(tensorflow, x, inner, weights) + x)
            case GlobalAverage():
                x = tensorflow.reduce_mean(x, (1, 2))
            case Dense():
                x = tensorflow.linalg.matmul(x, next(weights), transpose_b=True) + next(weights)
                x = tensorflow.nn.relu(x) if layer.has_relu else x
    return x


def _conv(tensorflow: Any, x: Any, layer: Conv, weights: Iterator[Array]) -> Any:
    """Return a convolution with its normalisation, which the converter folds."""
    kernel, scale, shift, mean, variance = (next(weights) for _ in range(5))
    strides, border = [1, layer.stride, layer.stride, 1], [layer.kernel // 2] * 2
    pads = [[0, 0], border, border, [0, 0]]
    if layer.is_depthwise:
        x = tensorflow.nn.depthwise_conv2d(x, kernel.transpose(2, 3, 0, 1), strides, pads)
    else:
        x = tensorflow.nn.conv2d(x, kernel.transpose(2, 3, 1, 0), strides, pads)
    factor = scale / np.sqrt(variance + NORM_EPSILON)
    x = x * factor + (shift - mean * factor)
    return tensorflow.nn.relu(x) if layer.has_relu else x
