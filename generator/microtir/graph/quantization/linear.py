"""Parameters of operators that accumulate: convolution, fully connected, pooling, mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from microtir.graph.fixed_point import Ints
from microtir.graph.ir import TensorType
from microtir.graph.ops import Activation, Conv2D, DepthwiseConv2D, FullyConnected, Mean, Pool2D
from microtir.graph.quantization.multiplier import (
    QuantizedMultiplier,
    activation_range,
    per_channel_multipliers,
    quantize_multiplier,
)


@dataclass(frozen=True, slots=True)
class LinearParams:
    """y = clamp(requantise(sum of w * (x - input_zero_point) + bias) + output_zero_point).

    `multipliers` has one entry for all output channels, or one for each.  Weights have the
    zero point 0; padding counts as the input's zero point, that is, adds nothing.
    """

    input_zero_point: int
    output_zero_point: int
    multipliers: tuple[QuantizedMultiplier, ...]
    activation_min: int
    activation_max: int

    @property
    def is_per_channel(self) -> bool:
        return len(self.multipliers) > 1

    def multiplier_arrays(self, channels: int) -> tuple[Ints, Ints]:
        """Multipliers and shifts, one per output channel."""
        pairs = self.multipliers * (channels // len(self.multipliers))
        return (
            np.array([pair.multiplier for pair in pairs], np.int64),
            np.array([pair.shift for pair in pairs], np.int64),
        )


def conv_params(
    op: Conv2D | DepthwiseConv2D, image: TensorType, weights: TensorType, output: TensorType
) -> LinearParams:
    """Parameters of an int8 convolution; multipliers come from scales in double."""
    return _linear(op.activation, image, output, per_channel_multipliers(image, weights, output))


def fully_connected_params(
    op: FullyConnected, features: TensorType, weights: TensorType, output: TensorType
) -> LinearParams:
    """Parameters of an int8 fully connected layer; multipliers come from scales in double."""
    multipliers = per_channel_multipliers(features, weights, output)
    return _linear(op.activation, features, output, multipliers)


def _linear(
    activation: Activation,
    features: TensorType,
    output: TensorType,
    multipliers: tuple[QuantizedMultiplier, ...],
) -> LinearParams:
    low, high = activation_range(activation, output)
    return LinearParams(
        input_zero_point=features.quant.zero_point,
        output_zero_point=output.quant.zero_point,
        multipliers=multipliers,
        activation_min=low,
        activation_max=high,
    )


@dataclass(frozen=True, slots=True)
class PoolParams:
    """Pooling works on stored values and never rescales; only the clamp is quantised."""

    activation_min: int
    activation_max: int


def pool_params(op: Pool2D, output: TensorType) -> PoolParams:
    """Parameters of int8 average and maximum pooling."""
    return PoolParams(*activation_range(op.activation, output))


@dataclass(frozen=True, slots=True)
class MeanParams:
    """y = clamp(requantise(sum of x - count * input_zero_point) + output_zero_point).

    `count` elements are averaged; the division is folded into `multiplier`.
    """

    input_zero_point: int
    output_zero_point: int
    count: int
    multiplier: QuantizedMultiplier
    minimum: int
    maximum: int


def mean_params(op: Mean, input_type: TensorType, output: TensorType) -> MeanParams:
    """Parameters of an int8 mean.

    The count divides the integer multiplier after a left shift by floor(log2(count)), so that
    the multiplier keeps its precision; the quotient is truncated.
    """
    count = math.prod(input_type.shape[axis] for axis in op.axes)
    multiplier, shift = quantize_multiplier(input_type.quant.scale / output.quant.scale)
    headroom = min(count.bit_length() - 1, 32, 31 + shift)
    folded = QuantizedMultiplier((multiplier << headroom) // count, shift - headroom)
    return MeanParams(
        input_zero_point=input_type.quant.zero_point,
        output_zero_point=output.quant.zero_point,
        count=count,
        multiplier=folded,
        minimum=output.dtype.min,
        maximum=output.dtype.max,
    )
