"""Models whose sums leave 32 bits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from microtir.operators.common.tflite_schema import Options, Padding
from microtir.operators.convolution.tflite import Conv2DOptions, DepthwiseConv2DOptions
from microtir.operators.dense.tflite import FullyConnectedOptions
from tests.support.sketch import Case, Quant, Shape, Sketch

OPERATORS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
_HUGE = np.array([2**31 - 1, -(2**31), 2**31 - 40_000, -(2**31) + 40_000, 0], np.int64)


def overflowing(operator: str, seed: int) -> Case:
    """Weights that are mostly -128 and biases near the ends of int32: some sums wrap, some do not.

    Output scales are large or small, so that wrapped sums show, or are cut off.
    """
    rng = np.random.default_rng(seed)
    s = Sketch(f"{operator.lower()}_{seed}", operator, np.dtype(np.int8), rng)
    zero_point, padding = s.zero_point(), Padding(s.pick(0, 1))
    depth, outputs = s.integer(1, 9), len(_HUGE) * 2
    image: Shape = (1, 4, 5, depth)
    weights: Shape
    result: Shape
    options: Options
    axis = 0
    size = (4, 5) if padding is Padding.SAME else (2, 3)
    if operator == "CONV_2D":
        weights, result = (outputs, 3, 3, depth), (1, *size, outputs)
        options = Conv2DOptions(padding, 1, 1)
    elif operator == "DEPTHWISE_CONV_2D":
        image, axis = (1, 4, 5, outputs), 3
        weights, result = (1, 3, 3, outputs), (1, *size, outputs)
        options = DepthwiseConv2DOptions(padding, 1, 1, 1)
    else:
        image, weights, result = (3, 40), (outputs, 40), (3, outputs)
        options = FullyConnectedOptions()
    x = s.input(image, Quant(0.5, zero_point))
    values = np.where(rng.random(weights) < 0.8, -128, rng.integers(-128, 128, weights))
    w = s.weights(values.astype(np.int8), [0.01] * outputs, axis)
    bias = np.concatenate([_HUGE, rng.choice(_HUGE, outputs - len(_HUGE))]).astype(np.int32)
    b = s.bias(bias, [0.005] * outputs)
    y = s.output(result, Quant(float(np.float32(s.pick(1e5, 3e4, 1.0))), s.zero_point()))
    return s.finish([x, w, b], y, options)


def all_cases(seeds: range) -> Iterator[Case]:
    """Of every operator and seed."""
    for operator in OPERATORS:
        for seed in seeds:
            yield overflowing(operator, seed)
