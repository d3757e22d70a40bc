"""Bounds of the integer sums that operators hold on the way to a result.

Kernels add in INT32, as TFLite's do.  A sum that leaves INT32 is undefined in C, so a kernel may
add like that only where no input can make it happen.  The bounds here hold for every order of the
terms, with or without the bias, and for both forms of an input: less its zero point, or as it is
stored while the zero point's share is part of the bias.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from microtir.graph.fixed_point import Ints, multiply_by_quantized_multiplier
from microtir.graph.ir import Node, SumRange
from microtir.graph.ops import (
    Add,
    AveragePool2D,
    Conv2D,
    DepthwiseConv2D,
    FullyConnected,
    LogSoftmax,
    Mean,
    Mul,
    Operator,
    Softmax,
    Sub,
)
from microtir.graph.quantization import SUM_INTEGER_BITS, add_params
from microtir.tir.dtype import DType

Interval: TypeAlias = tuple[Ints, Ints]
"""Lowest and highest stored value, one each per index of the last axis, or one for all."""


def sums_of(node: Node, inputs: Sequence[Interval | None] = ()) -> SumRange | None:
    """Bounds of the sums of an int8 operator; None if it has none.

    Args:
        node: of a legalised graph.
        inputs: what its inputs hold, as far as something is known; all values of int8 otherwise.
    """
    rule = _RULES.get(type(node.op))
    if rule is None or any(t.dtype is not DType.INT8 for t in node.inputs[:1]):
        return None
    if isinstance(node.op, _LINEAR) and node.inputs[1].data is None:
        return None
    known = [*inputs, *[None] * (len(node.inputs) - len(inputs))]
    return rule(node, [_ALL if interval is None else interval for interval in known])


def fits(node: Node) -> bool:
    """Whether the sums of a node are proven to stay within INT32."""
    sums = node.sums if node.sums is not None else sums_of(node)
    return sums is None or sums.fits


_ALL: Interval = (np.array([DType.INT8.min], np.int64), np.array([DType.INT8.max], np.int64))
_LINEAR = (Conv2D, DepthwiseConv2D, FullyConnected)


def _extent(start: Ints, lows: Ints, highs: Ints) -> SumRange:
    """Of any of the terms in any order, one row of them per channel, and `start` or nothing."""
    least = np.minimum(start, 0) + np.minimum(lows, 0).sum(axis=1)
    most = np.maximum(start, 0) + np.maximum(highs, 0).sum(axis=1)
    return SumRange(int(least.min(initial=0)), int(most.max(initial=0)))


def _joined(*ranges: SumRange) -> SumRange:
    return SumRange(min(r.low for r in ranges), max(r.high for r in ranges))


def _linear(node: Node, inputs: Sequence[Interval]) -> SumRange:
    """Products of a row of weights per output channel, and the bias."""
    data = node.inputs[1].data
    assert data is not None
    weights = data.astype(np.int64)
    low, high = inputs[0]
    if isinstance(node.op, DepthwiseConv2D):
        weights = weights.reshape(-1, weights.shape[-1]).T  # (O, KH*KW)
        repeat = len(weights) // len(low)
        low, high = (np.repeat(ends, repeat)[:, np.newaxis] for ends in (low, high))
    elif len(low) not in (1, weights.shape[-1]):  # a row of features is several pixels
        low, high = low.min(keepdims=True), high.max(keepdims=True)
    bias = bias_of(node)
    zero_point = node.inputs[0].type.quant.zero_point
    shares = zero_point * weights.reshape(len(weights), -1).sum(axis=1)
    # Outside the image stands the zero point.
    stored = np.minimum(low, zero_point), np.maximum(high, zero_point)
    return _joined(
        _products(bias, weights, (low - zero_point, high - zero_point)),
        _products(bias - shares, weights, stored),
    )


def _products(start: Ints, weights: Ints, values: Interval) -> SumRange:
    ends = [(weights * value).reshape(len(weights), -1) for value in values]
    return _extent(start, np.minimum(*ends), np.maximum(*ends))


def bias_of(node: Node) -> Ints:
    """The bias of a linear operator, zeros if it has none."""
    if len(node.inputs) < 3:
        return np.zeros(node.output.shape[-1], np.int64)
    data = node.inputs[2].data
    assert data is not None
    return data.astype(np.int64)


def _counted(count: int, inputs: Sequence[Interval], zero_point: int) -> SumRange:
    """So many elements, less a zero point each or all at once; half the count is for rounding."""
    low, high = int(inputs[0][0].min()), int(inputs[0][1].max())
    ends = [count * value for value in (low, high, low - zero_point, high - zero_point)]
    ends += [-count * zero_point, 0]
    return SumRange(min(ends) - count // 2, max(ends) + count // 2)


def _average_pool(node: Node, inputs: Sequence[Interval]) -> SumRange:
    assert isinstance(node.op, AveragePool2D)
    return _counted(math.prod(node.op.window), inputs, 0)


def _mean(node: Node, inputs: Sequence[Interval]) -> SumRange:
    count = node.inputs[0].type.elements // max(node.output.type.elements, 1)
    return _counted(count, inputs, node.inputs[0].type.quant.zero_point)


def _add(node: Node, inputs: Sequence[Interval]) -> SumRange:
    """The widened operands, rescaled and not, and their sum or difference."""
    op = node.op
    assert isinstance(op, Add | Sub)
    params = add_params(op, node.inputs[0].type, node.inputs[1].type, node.output.type)
    zero_points = params.input1_zero_point, params.input2_zero_point
    factors = params.input1, params.input2
    ranges: list[SumRange] = []
    for (low, high), zero_point, factor in zip(inputs, zero_points, factors, strict=True):
        ends = np.stack([low.min(), high.max()]) - zero_point << params.left_shift
        ranges.append(SumRange(int(ends[0]), int(ends[1])))
        ends = multiply_by_quantized_multiplier(ends, *factor)
        ranges.append(SumRange(int(ends[0]), int(ends[1])))
    first, second = ranges[1], ranges[3]
    if isinstance(op, Sub):
        second = SumRange(-second.high, -second.low)
    total = SumRange(first.low + second.low, first.high + second.high)
    return _joined(*ranges, total, SumRange(0, 0))


def _mul(node: Node, inputs: Sequence[Interval]) -> SumRange:
    """One product of two centred operands."""
    ends = [
        (int(low.min()) - t.type.quant.zero_point, int(high.max()) - t.type.quant.zero_point)
        for t, (low, high) in zip(node.inputs, inputs, strict=True)
    ]
    products = [a * b for a in ends[0] for b in ends[1]]
    return SumRange(min(*products, 0), max(*products, 0))


def _softmax(node: Node, _inputs: Sequence[Interval]) -> SumRange:
    """One power of at most 1 for each element of a row."""
    return SumRange(0, node.inputs[0].shape[-1] << 31 - SUM_INTEGER_BITS)


_RULES: Mapping[type[Operator], Callable[[Node, Sequence[Interval]], SumRange]] = MappingProxyType(
    {
        Conv2D: _linear,
        DepthwiseConv2D: _linear,
        FullyConnected: _linear,
        AveragePool2D: _average_pool,
        Mean: _mean,
        Add: _add,
        Sub: _add,
        Mul: _mul,
        Softmax: _softmax,
        LogSoftmax: _softmax,
    }
)
