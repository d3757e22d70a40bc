"""Builds networks of int8 layer by layer, with random weights, for pages and benchmarks.

What a layer costs depends on shapes and types, and hardly on the values of weights: that these are
random changes no figure of memory or work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from microtir.operators.common.tflite_schema import (
    BuiltinOperator,
    Options,
    Padding,
    TfliteActivation,
)
from microtir.operators.convolution.tflite import Conv2DOptions, DepthwiseConv2DOptions
from microtir.operators.dense.tflite import FullyConnectedOptions
from microtir.operators.movement.tflite import ConcatenationOptions, ReshapeOptions
from microtir.operators.pooling.tflite import Pool2DOptions
from microtir.operators.resize.tflite import ResizeNearestNeighborOptions
from microtir.operators.softmax.tflite import SoftmaxOptions
from microtir.writers.tflite import TfliteBuilder
from scripts.models.recurrent import Kind, Layer, add_lstm

_Code = BuiltinOperator

Stored: TypeAlias = tuple[float, int]
"""A scale and a zero point."""

RELU: Stored = (0.05, -128)  # of every activation, unless another is said
SIGNED: Stored = (0.05, -3)
HIDDEN: Stored = (2.0**-7, 0)  # what an LSTM gives, and takes
CHANCES: Stored = (1 / 256, -128)


@dataclass
class Network:
    """A network while it is written; `shapes` are those of its activations, NHWC or NC."""

    generator: np.random.Generator
    builder: TfliteBuilder = field(default_factory=TfliteBuilder)
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    _scales: dict[int, float] = field(default_factory=dict)

    def activation(self, shape: tuple[int, ...], stored: Stored = RELU) -> int:
        """Return a tensor of int8."""
        name = f"activation_{len(self.shapes)}"
        scale, zero_point = stored
        index = self.builder.tensor(name, shape, np.int8, None, [scale], [zero_point])
        self.shapes[index], self._scales[index] = shape, scale
        return index

    def constant(self, shape: tuple[int, ...]) -> int:
        """Return a constant of int8 with random values."""
        values = self.generator.integers(-127, 128, shape, np.int8)
        name = f"constant_{len(self.shapes)}"
        index = self.builder.tensor(name, shape, np.int8, values, [0.02], [0])
        self.shapes[index] = shape
        return index

    def ints(self, *values: int) -> int:
        """Return a constant of int32: axes, or extents."""
        name = f"ints_{'_'.join(map(str, values))}"
        return self.builder.tensor(name, (len(values),), np.int32, np.array(values, np.int32))

    def operator(
        self,
        code: BuiltinOperator,
        inputs: Sequence[int],
        shape: tuple[int, ...],
        options: Options | None = None,
        stored: Stored = SIGNED,
    ) -> int:
        """Return what an operator of any kind gives."""
        y = self.activation(shape, stored)
        self.builder.operator(code, inputs, [y], options)
        return y

    def conv(self, x: int, channels: int, taps: int | tuple[int, int] = 3, stride: int = 1) -> int:
        """Return a convolution with a ReLU that pads to keep the image, but for its stride."""
        high, wide = _pair(taps)
        y = self.activation((*self._image(x, stride), channels))
        weights = self._weights(x, (channels, high, wide, self.shapes[x][-1]), 0)
        options = Conv2DOptions(Padding.SAME, stride, stride, TfliteActivation.RELU)
        self.builder.operator(_Code.CONV_2D, [x, *weights], [y], options)
        return y

    def depthwise(self, x: int, taps: int | tuple[int, int] = 3, stride: int = 1) -> int:
        """Return a depthwise convolution with a ReLU, padded like `conv`."""
        high, wide = _pair(taps)
        channels = self.shapes[x][-1]
        y = self.activation((*self._image(x, stride), channels))
        weights = self._weights(x, (1, high, wide, channels), 3)
        options = DepthwiseConv2DOptions(
            Padding.SAME, stride, stride, activation=TfliteActivation.RELU
        )
        self.builder.operator(_Code.DEPTHWISE_CONV_2D, [x, *weights], [y], options)
        return y

    def separable(self, x: int, channels: int, stride: int = 1) -> int:
        """Return a depthwise convolution of 3x3 and one of single pixels."""
        return self.conv(self.depthwise(x, 3, stride), channels, 1)

    def inverted(self, x: int, channels: int, expansion: int, stride: int = 1) -> int:
        """Return an inverted residual of MobileNet v2: wide, depthwise, narrow, and a sum."""
        inner = self.conv(x, self.shapes[x][-1] * expansion, 1) if expansion > 1 else x
        y = self.conv(self.depthwise(inner, 3, stride), channels, 1)
        return self.add(x, y) if self.shapes[x] == self.shapes[y] else y

    def add(self, a: int, b: int) -> int:
        """Return a sum of two tensors of one shape."""
        y = self.activation(self.shapes[a])
        self.builder.operator(_Code.ADD, [a, b], [y])
        return y

    def concat(self, *images: int) -> int:
        """Return the channels of images behind each other."""
        channels = sum(self.shapes[image][-1] for image in images)
        y = self.activation((*self.shapes[images[0]][:-1], channels))
        self.builder.operator(_Code.CONCATENATION, images, [y], ConcatenationOptions(3))
        return y

    def average_pool(self, x: int) -> int:
        """Return the means of every 3x3 pixels, which keep the image."""
        options = Pool2DOptions(Padding.SAME, 1, 1, 3, 3)
        return self.operator(_Code.AVERAGE_POOL_2D, [x], self.shapes[x], options, RELU)

    def max_pool(self, x: int) -> int:
        """Return the largest of every 2x2 pixels."""
        y = self.activation((*self._image(x, 2), self.shapes[x][-1]))
        options = Pool2DOptions(Padding.SAME, 2, 2, 2, 2)
        self.builder.operator(_Code.MAX_POOL_2D, [x], [y], options)
        return y

    def enlarge(self, x: int) -> int:
        """Return an image with every pixel four times."""
        _, rows, columns, channels = self.shapes[x]
        y = self.activation((1, 2 * rows, 2 * columns, channels))
        size = self.builder.tensor(
            f"size_{y}", (2,), np.int32, np.array([2 * rows, 2 * columns], np.int32)
        )
        options = ResizeNearestNeighborOptions()
        self.builder.operator(_Code.RESIZE_NEAREST_NEIGHBOR, [x, size], [y], options)
        return y

    def mean(self, x: int) -> int:
        """Return the mean of all pixels, 1xC."""
        _, rows, columns, channels = self.shapes[x]
        pooled = self.activation((1, 1, 1, channels))
        options = Pool2DOptions(Padding.VALID, columns, rows, columns, rows)
        self.builder.operator(_Code.AVERAGE_POOL_2D, [x], [pooled], options)
        return self.flat(pooled)

    def flat(self, x: int) -> int:
        """Return all values in one row."""
        shape = (1, math.prod(self.shapes[x]))
        y = self.activation(shape)
        self.builder.operator(_Code.RESHAPE, [x], [y], ReshapeOptions(shape))
        return y

    def dense(self, x: int, units: int) -> int:
        """Return a fully connected layer with a ReLU."""
        y = self.activation((1, units))
        weights = self._weights(x, (units, self.shapes[x][-1]))
        options = FullyConnectedOptions(TfliteActivation.RELU)
        self.builder.operator(_Code.FULLY_CONNECTED, [x, *weights], [y], options)
        return y

    def projection(self, x: int, units: int, stored: Stored = SIGNED) -> int:
        """Return a fully connected layer without an activation, for each row of its input."""
        *rows, depth = self.shapes[x]
        weights = self._weights(x, (units, depth))
        options = FullyConnectedOptions(keep_num_dims=True)
        return self.operator(_Code.FULLY_CONNECTED, [x, *weights], (*rows, units), options, stored)

    def reshaped(self, x: int, shape: tuple[int, ...], stored: Stored = SIGNED) -> int:
        """Return the same elements in another shape; `stored` is how they are."""
        return self.operator(_Code.RESHAPE, [x], shape, ReshapeOptions(shape), stored)

    def lstm(self, x: int, units: int) -> int:
        """Return an LSTM over rows that are stored as `HIDDEN` is."""
        _, steps, inputs = self.shapes[x]
        layer = Layer(Kind.INT8, self.builder, self.generator)
        y = add_lstm(layer, f"lstm_{len(self.shapes)}_", x, steps, inputs, units)
        self.shapes[y], self._scales[y] = (1, steps, units), HIDDEN[0]
        return y

    def classifier(self, x: int, classes: int) -> int:
        """Return the chances of classes: a dense layer and a softmax."""
        sums = self.dense(x, classes)
        scale, zero_point = CHANCES
        y = self.builder.tensor("chances", (1, classes), np.int8, None, [scale], [zero_point])
        self.builder.operator(_Code.SOFTMAX, [sums], [y], SoftmaxOptions())
        return y

    def file(self, x: int, *outputs: int) -> bytes:
        """Return the model file."""
        return self.builder.build([x], list(outputs))

    def _image(self, x: int, stride: int) -> tuple[int, int, int]:
        """Return batch, rows and columns of what a padded window with a stride gives."""
        count, rows, columns, _ = self.shapes[x]
        return count, -(-rows // stride), -(-columns // stride)

    def _weights(self, x: int, shape: tuple[int, ...], axis: int | None = None) -> tuple[int, int]:
        """Return weights of `x` and a bias, with a scale for each channel along `axis` or one."""
        channels = shape[0 if axis is None else axis]
        depth = math.prod(shape) // channels
        values = self.generator.integers(-127, 128, shape, np.int8)
        # Outputs stay in the range of their scale, whatever the depth of the sums.
        scales = [0.02 / math.sqrt(depth)] * (1 if axis is None else channels)
        number = len(self.shapes)
        weights = self.builder.tensor(
            f"weights_{number}", shape, np.int8, values, scales, [0] * len(scales), axis
        )
        bias = self.builder.tensor(
            f"bias_{number}", (channels,), np.int32,
            self.generator.integers(-1000, 1000, channels, np.int32),
            [scale * self._scales[x] for scale in scales], [0] * len(scales),
            None if axis is None else 0,
        )  # fmt: skip
        return weights, bias


def _pair(taps: int | tuple[int, int]) -> tuple[int, int]:
    return (taps, taps) if isinstance(taps, int) else taps
