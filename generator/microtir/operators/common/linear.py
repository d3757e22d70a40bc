"""Derive parameters and bounds of operators that add up weighted inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from microtir.graph.ir import Node, SumRange, TensorType
from microtir.operators.common.attributes import Activation
from microtir.operators.common.fixed_point import Ints
from microtir.operators.common.multiplier import (
    QuantizedMultiplier,
    activation_range,
    check_shift,
    per_channel_multipliers,
)
from microtir.operators.common.problem import Problem
from microtir.operators.common.sums import Interval, joined


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
        """Return the multipliers and shifts, one per output channel."""
        pairs = self.multipliers * (channels // len(self.multipliers))
        return (
            np.array([pair.multiplier for pair in pairs], np.int64),
            np.array([pair.shift for pair in pairs], np.int64),
        )


def linear_params(
    activation: Activation,
    features: TensorType,
    output: TensorType,
    multipliers: tuple[QuantizedMultiplier, ...],
) -> LinearParams:
    """Derive the parameters of an int8 operator from its types and multipliers."""
    low, high = activation_range(activation, output)
    return LinearParams(
        input_zero_point=features.quant.zero_point,
        output_zero_point=output.quant.zero_point,
        multipliers=multipliers,
        activation_min=low,
        activation_max=high,
    )


def _extent(start: Ints, lows: Ints, highs: Ints) -> SumRange:
    """Bound the partial sums of every channel, in whatever order its terms are added.

    `lows` and `highs` have a row for each output channel: the least and the largest value of each
    term. The sum begins at 0 or at the channel's `start`, the bias.
    """
    least = np.minimum(start, 0) + np.minimum(lows, 0).sum(axis=1)
    most = np.maximum(start, 0) + np.maximum(highs, 0).sum(axis=1)
    return SumRange(int(least.min(initial=0)), int(most.max(initial=0)))


def linear_sums(node: Node, inputs: Sequence[Interval]) -> SumRange | None:
    """Bound the sums of input times weights (O, ...), and bias; None for weights that vary."""
    if node.inputs[1].data is None:
        return None
    weights = node.inputs[1].data.astype(np.int64)
    low, high = inputs[0]
    if len(low) not in (1, weights.shape[-1]):  # a row of features is several pixels
        low, high = low.min(keepdims=True), high.max(keepdims=True)
    return sums_of_products(node, weights, low, high)


def sums_of_products(node: Node, weights: Ints, low: Ints, high: Ints) -> SumRange:
    """Bound the sums of each output channel: its row of `weights` times inputs, and its bias.

    Args:
        node: gives the bias and the zero point of its first input.
        weights: output channels first.
        low: least stored values of the first input, as they are multiplied with the weights.
        high: largest ones.
    """
    bias = bias_of(node)
    zero_point = node.inputs[0].type.quant.zero_point
    shares = zero_point * weights.reshape(len(weights), -1).sum(axis=1)
    # Outside the image stands the zero point.
    stored = np.minimum(low, zero_point), np.maximum(high, zero_point)
    return joined(
        _products(bias, weights, (low - zero_point, high - zero_point)),
        _products(bias - shares, weights, stored),
    )


def _products(start: Ints, weights: Ints, values: Interval) -> SumRange:
    ends = [(weights * value).reshape(len(weights), -1) for value in values]
    return _extent(start, np.minimum(*ends), np.maximum(*ends))


def bias_of(node: Node) -> Ints:
    """Return the bias of a linear operator, zeros if it has none."""
    if len(node.inputs) < 3:
        return np.zeros(node.output.shape[-1], np.int64)
    data = node.inputs[2].data
    assert data is not None
    return data.astype(np.int64)


def linear_multipliers(node: Node) -> Iterator[Problem]:
    """Check the factors that int8 sums are rescaled by."""
    types = (node.inputs[0].type, node.inputs[1].type, node.output.type)
    for multiplier in per_channel_multipliers(*types):
        yield from check_shift(multiplier)
