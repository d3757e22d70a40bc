"""Derive parameters and bounds of operators that add up weighted inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Node, SumRange, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common.attributes import Activation, RescaledOperator, Rescaling
from microtir.operators.common.fixed_point import Ints
from microtir.operators.common.multiplier import (
    MAX_REDUCED_SHIFT,
    MAX_SHIFT,
    QuantizedMultiplier,
    activation_range,
    check_shift,
    per_channel_multipliers,
)
from microtir.operators.common.problem import Problem
from microtir.operators.common.sums import Interval, joined

_LARGEST_PRODUCT = 1 << 22  # of an int16 and an int8


class _ActivatedOperator(Operator):
    """An operator with a fused activation; it declares the field itself, behind its others."""

    __slots__ = ()
    activation: Activation


@dataclass(frozen=True, slots=True)
class WeightedOperator(RescaledOperator, _ActivatedOperator):
    """An operator of weighted sums."""

    rescaling: Rescaling = field(default=Rescaling.FIXED_POINT, kw_only=True)


def rescaling_of(node: Node) -> Rescaling:
    """Return how a node rescales integers; that of TFLite's if it has no choice."""
    op = node.op
    return op.rescaling if isinstance(op, RescaledOperator) else Rescaling.FIXED_POINT


def rescales_in_float(node: Node) -> bool:
    """Return whether a node rescales integers by a float or a double."""
    return rescaling_of(node).in_float


@dataclass(frozen=True, slots=True)
class LinearParams:
    """y = clamp(requantise(sum of w * (x - input_zero_point) + bias) + output_zero_point).

    `multipliers` has one entry for all output channels, or one for each.  Weights have the
    zero point 0; padding counts as the input's zero point, that is, adds nothing.  Where there are
    `factors`, as many, sums are rescaled by them as `rescaling` says, and not by the multipliers.
    """

    input_zero_point: int
    output_zero_point: int
    multipliers: tuple[QuantizedMultiplier, ...]
    activation_min: int
    activation_max: int
    factors: tuple[float, ...] = ()
    rescaling: Rescaling = Rescaling.FIXED_POINT

    @property
    def is_per_channel(self) -> bool:
        return len(self.multipliers) > 1

    @property
    def in_double(self) -> bool:
        """Return whether sums are rescaled by doubles."""
        return self.rescaling.in_double

    def multiplier_arrays(self, channels: int) -> tuple[Ints, Ints]:
        """Return the multipliers and shifts, one per output channel."""
        return multiplier_arrays(self.multipliers, channels)


def multiplier_arrays(factors: tuple[QuantizedMultiplier, ...], channels: int) -> tuple[Ints, Ints]:
    """Return the multipliers and shifts of factors, one per output channel."""
    pairs = factors * (channels // len(factors))
    return (
        np.array([pair.multiplier for pair in pairs], np.int64),
        np.array([pair.shift for pair in pairs], np.int64),
    )


def has_long_sums(node: Node) -> bool:
    """Return whether a node adds products in 64 bits, and rescales sums with one rounding.

    So do operators on int16, as tflite-micro computes them, unless they have a bias of int32.
    """
    return node.inputs[0].dtype is DType.INT16 and all(
        tensor.dtype is not DType.INT32 for tensor in node.inputs[2:]
    )


def linear_params(
    activation: Activation,
    features: TensorType,
    output: TensorType,
    multipliers: tuple[QuantizedMultiplier, ...],
) -> LinearParams:
    """Derive the parameters of an integer operator from its types and multipliers."""
    low, high = activation_range(activation, output)
    return LinearParams(
        input_zero_point=features.quant.zero_point,
        output_zero_point=output.quant.zero_point,
        multipliers=multipliers,
        activation_min=low,
        activation_max=high,
    )


def params_of(node: Node) -> LinearParams:
    """Derive the parameters of sums of products of a node's first two inputs."""
    activation = node.op.activation if isinstance(node.op, WeightedOperator) else Activation.NONE
    x, y = (tensor.type for tensor in node.inputs[:2])
    return weighted_params(activation, rescaling_of(node), x, y, node.output.type)


def weighted_params(
    activation: Activation,
    rescaling: Rescaling,
    features: TensorType,
    weights: TensorType,
    output: TensorType,
) -> LinearParams:
    """Derive the parameters of a layer with weights; multipliers are computed in double."""
    multipliers = per_channel_multipliers(features, weights, output)
    params = linear_params(activation, features, output, multipliers)
    if rescaling is Rescaling.FIXED_POINT:
        return params
    if rescaling is Rescaling.FLOAT64:
        factors = _double_factors(features, weights, output)
        return replace(params, factors=factors, rescaling=rescaling)
    low, high = float_range(activation, output, rescaling)
    if rescaling is Rescaling.EXACT:
        factors = exact_factors(features, weights, output)
    else:
        factors = _float_factors(features, weights, output)
    return replace(
        params, activation_min=low, activation_max=high, factors=factors, rescaling=rescaling
    )


def float_range(
    activation: Activation, output: TensorType, rescaling: Rescaling = Rescaling.FLOAT32
) -> tuple[int, int]:
    """Return the stored ends of an activation, quantised as all floats are: ties to even."""
    if rescaling is Rescaling.EXACT:
        ends = np.array(activation.real_range, np.float64) * reciprocal(output)
    else:
        ends = np.array(activation.real_range, np.float32) / np.float32(output.quant.scale)
    stored = np.rint(ends) + output.quant.zero_point
    low, high = np.clip(stored, output.dtype.min, output.dtype.max).tolist()
    return int(low), int(high)


def _float_factors(
    features: TensorType, weights: TensorType, output: TensorType
) -> tuple[float, ...]:
    """Return the factors of sums, every step rounded to float32 as onnxruntime does it."""
    products = np.float32(features.quant.scale) * np.array(weights.quant.scales, np.float32)
    return tuple((products / np.float32(output.quant.scale)).tolist())


def reciprocal(output: TensorType) -> float:
    """Return the reciprocal of a scale as a float32, by which PT2E multiplies."""
    return float(np.float32(1.0 / output.quant.scale))


def exact_factors(
    features: TensorType, weights: TensorType, output: TensorType
) -> tuple[float, ...]:
    """Return the doubles next to the factors of PT2E: two float32 multiply to an exact double."""
    scales = np.array(weights.quant.scales, np.float32).astype(np.float64)
    products = float(np.float32(features.quant.scale)) * scales
    return tuple((products * reciprocal(output)).tolist())


def sum_factor(x: TensorType, y: TensorType, count: int, rescaling: Rescaling) -> float:
    """Return the factor of a sum of elements, or of a mean of `count`.

    It is that of onnxruntime in float32; for PT2E it is the next double.
    """
    if rescaling is Rescaling.EXACT:
        return float(np.float32(x.quant.scale)) * reciprocal(y) / count
    return float(np.float32(x.quant.scale) / (np.float32(y.quant.scale) * np.float32(count)))


def _double_factors(
    features: TensorType, weights: TensorType, output: TensorType
) -> tuple[float, ...]:
    """Return the factors of sums as LiteRT computes them: in double."""
    scales = np.array(weights.quant.scales, np.float64)
    return tuple((features.quant.scale * scales / output.quant.scale).tolist())


def rescaled_in_float(sums: Ints, params: LinearParams) -> Ints:
    """Return what sums, channels last, are stored as: times the factors of `params`, to nearest."""
    channels = sums.shape[-1]
    by_channel = np.array(params.factors * (channels // len(params.factors)))
    scaled = times_factors(sums, by_channel, params.rescaling)
    return np.clip(scaled + params.output_zero_point, params.activation_min, params.activation_max)


def times_factors(sums: Ints, factors: Array, rescaling: Rescaling) -> Ints:
    """Return integers times float32 or double factors, rounded as a rescaling in floats does."""
    if rescaling is Rescaling.FLOAT64:
        real = sums.astype(np.float64) * factors
        whole = np.trunc(real)
        rounded = whole + (real - whole >= 0.5) - (real - whole <= -0.5)
    elif rescaling is Rescaling.EXACT:
        rounded = np.rint(sums.astype(np.float64) * factors)
    else:
        rounded = np.rint(sums.astype(np.float32) * factors.astype(np.float32))
    scaled: Ints = rounded.astype(np.int64)
    return scaled


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
    zero_point = node.inputs[0].type.quant.zero_point
    return sums_of_rows(weights, bias_of(node), zero_point, (low, high))


def sums_of_rows(weights: Array, bias: Array | None, zero_point: int, inputs: Interval) -> SumRange:
    """Bound the sums of each row of `weights` times inputs, and its bias.

    Args:
        weights: output channels first.
        bias: of each channel, if there is one.
        zero_point: of the inputs.
        inputs: least and largest stored values, as they are multiplied with the weights.
    """
    factors, (low, high) = weights.astype(np.int64), inputs
    start = np.zeros(len(factors), np.int64) if bias is None else bias.astype(np.int64)
    shares = zero_point * factors.reshape(len(factors), -1).sum(axis=1)
    # Outside the image stands the zero point.
    stored = np.minimum(low, zero_point), np.maximum(high, zero_point)
    return joined(
        _products(start, factors, (low - zero_point, high - zero_point)),
        _products(start - shares, factors, stored),
    )


def _products(start: Ints, weights: Ints, values: Interval) -> SumRange:
    ends = [(weights * value).reshape(len(weights), -1) for value in values]
    return _extent(start, np.minimum(*ends), np.maximum(*ends))


def bias_of(node: Node) -> Ints:
    """Return the bias of a linear operator, zeros if it has none."""
    if len(node.inputs) < 3:
        return np.zeros(node.output.shape[-1], np.int64)
    data = node.inputs[2].values
    return data.astype(np.int64)


def linear_multipliers(node: Node) -> Iterator[Problem]:
    """Check the factors that integer sums are rescaled by, and sums of 64 bits."""
    yield from factor_problems(node)
    if has_long_sums(node):
        terms = node.inputs[1].type.elements // max(node.output.type.channels, 1)
        bias = node.inputs[2].data if len(node.inputs) > 2 else None
        yield from check_long_sums(terms, bias)


def factor_problems(node: Node) -> Iterator[Problem]:
    """Find factors of sums of products of the first two inputs that are too large."""
    types = (node.inputs[0].type, node.inputs[1].type, node.output.type)
    limit = MAX_REDUCED_SHIFT if has_long_sums(node) else MAX_SHIFT
    for multiplier in per_channel_multipliers(*types):
        yield from check_shift(multiplier, limit)


def check_long_sums(terms: int, bias: Array | None) -> Iterator[Problem]:
    """Find sums of products of int16 and int8 that may leave the 48 bits that rescaling takes."""
    largest = terms * _LARGEST_PRODUCT
    if bias is not None:
        largest += max(abs(int(bias.min(initial=0))), abs(int(bias.max(initial=0))))
    if largest >= 1 << 47:
        yield Problem("its sums may take more than 48 bits", "a bias below 2^46")
