"""Puts what constant channels add at a border into one or two channels.

A channel that always holds one value adds a constant to a convolution's sums, which moves into the
bias (`fold_constant_channels`), unless windows leave the image and the value is not that of the
padding: then the sum needs a bias of its own for each set of taps that lie inside.  A constant
channel is just that: one value inside, the padding's outside, so that its weights are what each tap
adds wherever it lies inside.  All such channels together are therefore one channel of a value that
divides what they add, or two, of the largest value and of 1, that add its digits.  No kernel
has to know.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Tensor, TensorType
from microtir.graph.rewriting import Rewrite, with_nodes
from microtir.operators.common import fixed_point
from microtir.operators.common.linear import LinearParams, bias_of, params_of
from microtir.operators.convolution import definition as convolution
from microtir.rewrite.facts.channel_ranges import ChannelRanges, channel_ranges, sees_border

# Beyond -127 weights do not fit every packed form.
_LARGEST_WEIGHT = 127


class GatherConstantChannels(Rewrite):
    """Joins constant channels that a convolution meets under padding of another value.

    Needs a convolution as producer, which is told to make the values, and no other reader. The
    channels that are left over have no weights any more; another pass removes them.
    """

    def __call__(self, graph: Graph) -> Graph:
        ranges, consumers, producers = channel_ranges(graph), graph.consumers(), graph.producers()
        changed: dict[Node, Node] = {}
        for node in graph.nodes:
            x = node.inputs[0]
            if x in graph.outputs or consumers[x] != (node,) or node.inputs.count(x) > 1:
                continue
            producer = producers.get(x)
            if producer is None or not (_is_int8(node) and _is_int8(producer)):
                continue
            if isinstance(node.op, convolution.Conv2D) and sees_border(node):
                # The producer may have been the reader of another one.
                gathered = _gathered(changed.get(producer, producer), node, ranges)
                if gathered is not None:
                    changed[producer], changed[node] = gathered
        return with_nodes(graph, (changed.get(node, node) for node in graph.nodes))


def _is_int8(node: Node) -> bool:
    if not isinstance(node.op, convolution.Conv2D | convolution.DepthwiseConv2D):
        return False
    if isinstance(node.op, convolution.Conv2D) and convolution.groups_of(node) > 1:
        return False
    image, weights = node.inputs[:2]
    return image.dtype is weights.dtype is DType.INT8 and weights.data is not None


def _gathered(
    producer: Node, reader: Node, ranges: Mapping[Tensor, ChannelRanges]
) -> tuple[Node, Node] | None:
    """Return both with the constant channels between them joined.

    None if none would become free.
    """
    x = reader.inputs[0]
    zero_point = x.type.quant.zero_point
    values = ranges[x].low - zero_point
    constant = np.flatnonzero(ranges[x].is_constant & (values != 0)).tolist()
    weights = _weights(reader)
    shares = (weights[..., constant] * values[constant]).sum(axis=-1)
    for digits in _digits(shares, params_of(producer), zero_point):
        biases = [_bias_of(producer, c, value) for c, value in zip(constant, digits, strict=False)]
        if len(digits) < len(constant) and None not in biases:
            carriers = constant[: len(digits)]
            weights[..., constant] = 0
            for channel, added in zip(carriers, digits.values(), strict=True):
                weights[..., channel] = added
            new_biases = {c: b for c, b in zip(carriers, biases, strict=True) if b is not None}
            return _making(producer, new_biases), _with_weights(reader, weights)
    return None


def _digits(
    shares: fixed_point.Ints, params: LinearParams, zero_point: int
) -> Iterator[Mapping[int, fixed_point.Ints]]:
    """Yield ways to write sums as values of channels, zero points off, times int8 weights."""
    ends = params.activation_max - zero_point, params.activation_min - zero_point
    largest = max(ends, key=abs)
    if not shares.any():
        yield {}
        return
    common = math.gcd(*map(int, np.unique(np.abs(shares))))
    for value in range(min(abs(largest), common), 0, -1):
        if common % value == 0:
            signed = value if largest > 0 else -value
            if np.abs(shares // signed).max() <= _LARGEST_WEIGHT:
                yield {signed: shares // signed}
            break
    if abs(largest) > 1:
        high = np.rint(shares / largest).astype(np.int64)
        low = shares - high * largest
        unit = 1 if largest > 0 else -1
        if max(np.abs(high).max(), np.abs(low).max()) <= _LARGEST_WEIGHT:
            yield {largest: high, unit: low * unit}


def _bias_of(producer: Node, channel: int, value: int) -> int | None:
    """Return a bias that alone gives a channel the stored value, its zero point off.

    None if none does.
    """
    params = params_of(producer)
    if params.factors:
        return None
    multipliers, shifts = params.multiplier_arrays(producer.output.shape[-1])
    multiplier, shift = int(multipliers[channel]), int(shifts[channel])

    def result(bias: int) -> int:
        scaled = int(fixed_point.multiply_by_quantized_multiplier(bias, multiplier, shift))
        stored = scaled + params.output_zero_point
        stored = min(max(stored, params.activation_min), params.activation_max)
        return stored - params.output_zero_point

    # Beyond these a left shift wraps, and results are not sorted.
    low, high = fixed_point.INT32_MIN >> max(shift, 0), fixed_point.INT32_MAX >> max(shift, 0)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if result(middle) >= value else (middle + 1, high)
    return low if result(low) == value else None


def _weights(node: Node) -> fixed_point.Ints:
    data = node.inputs[1].values
    return data.astype(np.int64)


def _making(node: Node, biases: Mapping[int, int]) -> Node:
    """Return a convolution whose channels of these numbers have no weights, and such a bias."""
    weights, bias = _weights(node), bias_of(node).copy()
    for channel, value in biases.items():
        weights[(..., channel) if isinstance(node.op, convolution.DepthwiseConv2D) else channel] = 0
        bias[channel] = value
    changed = _with_weights(node, weights)
    type_ = TensorType(bias.shape, DType.INT32)
    like = node.inputs[2] if len(node.inputs) > 2 else Tensor(f"{node.name}/bias", type_)
    constant = replace(like, data=bias.astype(np.int32))
    return replace(changed, inputs=(*changed.inputs[:2], constant))


def _with_weights(node: Node, weights: fixed_point.Ints) -> Node:
    constant = replace(node.inputs[1], data=weights.astype(node.inputs[1].dtype.value))
    return replace(node, inputs=(node.inputs[0], constant, *node.inputs[2:]))
