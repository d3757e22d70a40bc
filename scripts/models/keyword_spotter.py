"""`python -m scripts.models.keyword_spotter FILE [--time valid]`: a keyword spotter over 49 frames.

Its layers are those of MLPerf Tiny's `kws`: a convolution of ten frames with a stride of two, four
pairs of depthwise and pointwise convolutions, the mean, a dense layer and a softmax.  Along the ten
features it pads as that model does.  Along time it pads, too, or it does not: then windows meet
nothing but frames, and a stream computes each row once.  Weights are random.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import numpy as np

from microtir.operators.common.tflite_schema import BuiltinOperator, Padding, TfliteActivation
from microtir.operators.convolution.tflite import Conv2DOptions, DepthwiseConv2DOptions
from microtir.operators.dense.tflite import FullyConnectedOptions
from microtir.operators.movement.tflite import ReshapeOptions
from microtir.operators.pooling.tflite import Pool2DOptions
from microtir.operators.softmax.tflite import SoftmaxOptions
from microtir.writers.tflite import TfliteBuilder

Code = BuiltinOperator

FRAMES, FEATURES, CHANNELS, CLASSES, BLOCKS = 49, 10, 64, 12, 4
_TAPS, _STRIDE = (10, 4), 2  # of the first convolution: frames and features
_DEPTHWISE_TAPS = 3
_SCALE, _ZERO_POINT = 0.05, -128  # of every layer behind a ReLU
_WEIGHT = 0.006


class TimePadding(Enum):
    """What windows meet at either end of the frames."""

    SAME = "same"
    VALID = "valid"


def keyword_spotter(time: TimePadding, seed: int = 0) -> bytes:
    """Return the model file.

    Args:
        time: whether layers pad along time.
        seed: of the weights.
    """
    model = _Model(time, np.random.default_rng(seed))
    x = model.tensor("frames", (1, FRAMES, FEATURES, 1), 0)
    y = model.first(x)
    for _ in range(BLOCKS):
        y = model.pointwise(model.depthwise(y))
    return model.builder.build([x], [model.head(y)])


@dataclass
class _Model:
    """A model while it is written; tensors are of int8."""

    time: TimePadding
    generator: np.random.Generator
    builder: TfliteBuilder = field(default_factory=TfliteBuilder)
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def tensor(self, name: str, shape: tuple[int, ...], zero_point: int = _ZERO_POINT) -> int:
        """Return an activation."""
        named = f"{name}_{len(self.shapes)}"
        index = self.builder.tensor(named, shape, np.int8, None, [_SCALE], [zero_point])
        self.shapes[index] = shape
        return index

    def first(self, x: int) -> int:
        """Return the first convolution."""
        x = self._padded(x, _TAPS, _STRIDE)
        y = self._output(x, _TAPS, _STRIDE)
        weights = self._weights((CHANNELS, *_TAPS, 1), 0)
        options = Conv2DOptions(Padding.VALID, _STRIDE, _STRIDE, TfliteActivation.RELU)
        self.builder.operator(Code.CONV_2D, [x, *weights], [y], options)
        return y

    def depthwise(self, x: int) -> int:
        """Return a depthwise convolution of three frames and features."""
        taps = _DEPTHWISE_TAPS, _DEPTHWISE_TAPS
        x = self._padded(x, taps, 1)
        y = self._output(x, taps, 1)
        weights = self._weights((1, *taps, CHANNELS), 3)
        options = DepthwiseConv2DOptions(Padding.VALID, activation=TfliteActivation.RELU)
        self.builder.operator(Code.DEPTHWISE_CONV_2D, [x, *weights], [y], options)
        return y

    def pointwise(self, x: int) -> int:
        """Return a convolution of single pixels."""
        y = self.tensor("mixed", self.shapes[x])
        weights = self._weights((CHANNELS, 1, 1, CHANNELS), 0)
        options = Conv2DOptions(Padding.VALID, activation=TfliteActivation.RELU)
        self.builder.operator(Code.CONV_2D, [x, *weights], [y], options)
        return y

    def head(self, x: int) -> int:
        """Return chances: of the mean of all pixels, a dense layer and a softmax."""
        _, rows, columns, channels = self.shapes[x]
        mean = self.tensor("mean", (1, 1, 1, channels))
        options = Pool2DOptions(Padding.VALID, columns, rows, columns, rows)
        self.builder.operator(Code.AVERAGE_POOL_2D, [x], [mean], options)
        flat = self.tensor("flat", (1, channels))
        self.builder.operator(Code.RESHAPE, [mean], [flat], ReshapeOptions((1, channels)))
        sums = self.tensor("sums", (1, CLASSES), 0)
        weights = self._weights((CLASSES, channels))
        self.builder.operator(
            Code.FULLY_CONNECTED, [flat, *weights], [sums], FullyConnectedOptions()
        )
        chances = self.builder.tensor("chances", (1, CLASSES), np.int8, None, [1 / 256], [-128])
        self.builder.operator(Code.SOFTMAX, [sums], [chances], SoftmaxOptions())
        return chances

    def _padded(self, x: int, taps: tuple[int, int], stride: int) -> int:
        """Return what windows slide over: padded along features, and along time if so asked."""
        _, rows, columns, channels = self.shapes[x]
        time = _both_ends(rows, taps[0], stride) if self.time is TimePadding.SAME else (0, 0)
        sides = [(0, 0), time, _both_ends(columns, taps[1], stride), (0, 0)]
        shape = (1, rows + sum(time), columns + sum(sides[2]), channels)
        zero_point = 0 if rows == FRAMES else _ZERO_POINT
        y = self.tensor("padded", shape, zero_point)
        paddings = self.builder.tensor("paddings", (4, 2), np.int32, np.array(sides, np.int32))
        self.builder.operator(Code.PAD, [x, paddings], [y])
        return y

    def _output(self, x: int, taps: tuple[int, int], stride: int) -> int:
        """Return what a convolution of a padded image gives."""
        _, *image, _ = self.shapes[x]
        rows, columns = (
            (extent - reach) // stride + 1 for extent, reach in zip(image, taps, strict=True)
        )
        return self.tensor("convolved", (1, rows, columns, CHANNELS))

    def _weights(self, shape: tuple[int, ...], axis: int | None = None) -> tuple[int, int]:
        """Return weights and a bias; a scale for each channel along `axis`, or one."""
        channels = shape[0 if axis is None else axis]
        scales = _WEIGHT * self.generator.uniform(0.7, 1.3, 1 if axis is None else channels)
        data = self.generator.integers(-127, 128, shape)
        weights = self.builder.tensor("weights", shape, np.int8, data, scales, axis=axis)
        bias = self.generator.integers(-900, 900, channels)
        of_bias = None if axis is None else 0
        added = self.builder.tensor(
            "bias", (channels,), np.int32, bias, scales * _SCALE, axis=of_bias
        )
        return weights, added


def _both_ends(extent: int, taps: int, stride: int) -> tuple[int, int]:
    """Return the padding at either end that TFLite's SAME stands for."""
    whole = max((-(-extent // stride) - 1) * stride + taps - extent, 0)
    return whole // 2, whole - whole // 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(prog="keyword_spotter", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument(
        "--time", type=TimePadding, choices=list(TimePadding), default=TimePadding.VALID,
        metavar="same|valid", help="what windows meet at either end of the frames",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    options.file.write_bytes(keyword_spotter(options.time))


if __name__ == "__main__":
    main()
