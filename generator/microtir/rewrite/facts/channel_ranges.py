"""Ranges of the stored values that each channel of an int8 tensor can take, for any input.

Interval arithmetic through the integer graph, with no data: a model input takes all values of its
type, or those that the user declares, and every operator maps intervals of its inputs to intervals
of its output.  A channel is an index of the last axis.  Results are exact bounds of the integer
computation, not estimates: each operator is bounded by evaluating its own integer definition at the
ends of the intervals, which is sound because the requantisation of an accumulator never decreases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Quantization, SourceLocation, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.operators.arithmetic.definition import Add
from microtir.operators.common.attributes import Rescaling
from microtir.operators.common.fixed_point import INT32_MAX, Ints, multiply_by_quantized_multiplier
from microtir.operators.common.linear import LinearParams, bias_of, params_of, rescaled_in_float
from microtir.operators.convolution.definition import (
    Conv2D,
    DepthwiseConv2D,
    groups_of,
)
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.movement.definition import Concatenation, Pad, Reshape
from microtir.operators.pooling.definition import AveragePool2D, MaxPool2D
from microtir.operators.reduction.definition import Mean, sum_params
from microtir.operators.tables import has_table, lookup_table
from microtir.rewrite.reference import evaluate


@dataclass(frozen=True, slots=True, eq=False)
class ChannelRanges:
    """Inclusive bounds of the stored values, one pair per index of the last axis."""

    low: Ints
    high: Ints

    @staticmethod
    def full(type_: TensorType) -> ChannelRanges:
        """Return all values of the type."""
        return ChannelRanges.between(type_, type_.dtype.min, type_.dtype.max)

    @staticmethod
    def between(type_: TensorType, low: int, high: int) -> ChannelRanges:
        """Return the same values for all channels."""
        return ChannelRanges(
            np.full(type_.channels, low, np.int64), np.full(type_.channels, high, np.int64)
        )

    @staticmethod
    def of_data(data: npt.NDArray[Any]) -> ChannelRanges:
        """Return the values that a constant holds."""
        flat = data.reshape(-1, data.shape[-1] if data.ndim else 1).astype(np.int64)
        return ChannelRanges(flat.min(axis=0), flat.max(axis=0))

    @property
    def is_constant(self) -> npt.NDArray[np.bool_]:
        """Return for each channel whether it always holds one value."""
        return np.asarray(self.low == self.high)

    def everywhere(self, channels: int) -> ChannelRanges:
        """Return the bounds of all channels together, for `channels` channels."""
        low, high = int(self.low.min()), int(self.high.max())
        return ChannelRanges(np.full(channels, low, np.int64), np.full(channels, high, np.int64))


def channel_ranges(graph: Graph) -> Mapping[Tensor, ChannelRanges]:
    """Return the ranges of every int8 tensor of a graph."""
    declared = dict(graph.input_ranges)
    ranges: dict[Tensor, ChannelRanges] = {
        t: ChannelRanges.between(t.type, *declared.get(t, (t.dtype.min, t.dtype.max)))
        for t in graph.inputs
        if t.dtype is DType.INT8
    }
    for node in graph.nodes:
        for tensor in node.inputs:
            if tensor.dtype is DType.INT8 and tensor.data is not None:
                ranges[tensor] = ChannelRanges.of_data(tensor.data)
        for tensor in node.outputs:
            if tensor.dtype is DType.INT8:
                ranges[tensor] = output_range(node, tensor, ranges)
    return MappingProxyType(ranges)


def output_range(
    node: Node, output: Tensor, ranges: Mapping[Tensor, ChannelRanges]
) -> ChannelRanges:
    """Return the range of an int8 output, from those of the inputs."""
    rule = _RULES.get(type(node.op))
    if any(t not in ranges for t in node.inputs[:1]):
        return ChannelRanges.full(output.type)
    if rule is not None:
        return rule(node, [ranges[t] for t in node.inputs if t in ranges])
    if has_table(node.op, node.inputs[0].type, output.type):
        return _table(node, ranges[node.inputs[0]])
    return ChannelRanges.full(output.type)


# --- accumulators -------------------------------------------------------------------------------


def convolution_sums(node: Node, x: ChannelRanges) -> ChannelRanges:
    """Return bounds of the accumulators of a convolution, over every position of the window.

    Taps outside the image add nothing, so each combination of valid rows and valid columns is a
    case of its own; the bounds are those of all cases together.
    """
    weights, bias, params = node.inputs[1].values.astype(np.int64), bias_of(node), params_of(node)
    offset_low, offset_high = x.low - params.input_zero_point, x.high - params.input_zero_point
    if isinstance(node.op, DepthwiseConv2D):
        per_tap = np.moveaxis(weights[0], -1, 0)  # (O, KH, KW)
        repeat = node.op.depth_multiplier
        low, high = (np.repeat(v, repeat)[:, None, None] for v in (offset_low, offset_high))
        ends = (per_tap * low, per_tap * high)
        tap_low, tap_high = np.minimum(*ends), np.maximum(*ends)
    else:
        groups = groups_of(node)
        ends = (_by_group(weights, offset_low, groups), _by_group(weights, offset_high, groups))
        tap_low, tap_high = np.minimum(*ends).sum(axis=-1), np.maximum(*ends).sum(axis=-1)
    lows, highs = [], []
    for rows, columns in product(*window_classes(node)):
        lows.append(tap_low[:, rows, columns].sum(axis=(1, 2)))
        highs.append(tap_high[:, rows, columns].sum(axis=(1, 2)))
    return ChannelRanges(bias + np.min(lows, axis=0), bias + np.max(highs, axis=0))


def _by_group(weights: Ints, offsets: Ints, groups: int) -> Ints:
    """Return the products of weights (O, KH, KW, I) with values of the channels of their groups."""
    by_group = offsets.reshape(groups, 1, 1, 1, -1)
    products: Ints = weights.reshape(groups, -1, *weights.shape[1:]) * by_group
    return products.reshape(weights.shape)


def window_classes(node: Node) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Return the different sets of taps that lie inside the image, for rows and for columns."""
    op = node.attributes(Conv2D, DepthwiseConv2D)
    taps = node.inputs[1].shape[1:3]
    sizes, outputs = node.inputs[0].shape[1:3], node.output.shape[1:3]
    before = (op.padding.top, op.padding.left)
    classes = [
        tuple(dict.fromkeys(_inside(taps[a], sizes[a], outputs[a], before[a], op, a)))
        for a in (0, 1)
    ]
    rows, columns = (tuple(slice(first, last) for first, last in c) for c in classes)
    return rows, columns


def sees_border(node: Node) -> bool:
    """Return whether some window of a convolution leaves the image."""
    rows, columns = window_classes(node)
    taps = node.inputs[1].shape[1:3]
    return (rows, columns) != ((slice(0, taps[0]),), (slice(0, taps[1]),))


def _inside(
    taps: int, size: int, outputs: int, before: int, op: Conv2D | DepthwiseConv2D, axis: int
) -> Iterator[tuple[int, int]]:
    """Yield first and last+1 tap inside the image for each position of the window."""
    stride, dilation = op.strides[axis], op.dilations[axis]
    for position in range(outputs):
        origin = position * stride - before
        first = max(0, -(origin // dilation) if origin < 0 else 0)
        last = min(taps, -((origin - size) // dilation))
        yield first, max(first, last)


def _requantised(node: Node, sums: ChannelRanges, params: LinearParams) -> ChannelRanges:
    """Return the outputs of sums; all values where one of them wraps and no order is kept."""
    largest = np.maximum(~sums.low, sums.high)
    if params.factors and largest.max(initial=0) <= INT32_MAX:
        return ChannelRanges(
            rescaled_in_float(sums.low, params), rescaled_in_float(sums.high, params)
        )
    multipliers, shifts = params.multiplier_arrays(len(sums.low))
    largest = largest << np.maximum(shifts, 0)
    if params.factors or largest.max(initial=0) > INT32_MAX:
        return ChannelRanges.full(node.output.type)

    def apply(value: Ints) -> Ints:
        scaled = multiply_by_quantized_multiplier(value, multipliers, shifts)
        shifted = scaled + params.output_zero_point
        return np.clip(shifted, params.activation_min, params.activation_max)

    return ChannelRanges(apply(sums.low), apply(sums.high))


# --- rules by operator --------------------------------------------------------------------------


def _convolution(node: Node, inputs: list[ChannelRanges]) -> ChannelRanges:
    if node.inputs[1].data is None:
        return ChannelRanges.full(node.output.type)
    return _requantised(node, convolution_sums(node, inputs[0]), params_of(node))


def _fully_connected(node: Node, inputs: list[ChannelRanges]) -> ChannelRanges:
    features, weights = node.inputs[:2]
    if weights.data is None or features.type.channels != weights.shape[1]:
        return ChannelRanges.full(node.output.type)
    params = params_of(node)
    x, w = inputs[0], weights.data.astype(np.int64)
    ends = (w * (x.low - params.input_zero_point), w * (x.high - params.input_zero_point))
    bias = bias_of(node)
    low = bias + np.minimum(*ends).sum(axis=1)
    high = bias + np.maximum(*ends).sum(axis=1)
    return _requantised(node, ChannelRanges(low, high), params)


def _by_channel(node: Node, inputs: list[ChannelRanges]) -> ChannelRanges:
    """Bound a mean or maximum of each channel, which never decreases where an element grows.

    Its ends are its results for elements that are all the least and all the largest of a channel.
    """
    x, op, input_type = inputs[0], node.op, node.inputs[0].type
    if isinstance(op, Mean) and (len(input_type.shape) - 1 in op.axes or _may_wrap(op, node)):
        return ChannelRanges.full(node.output.type)
    low, high = (
        evaluate(node, (np.broadcast_to(end.astype(np.int8), input_type.shape),))[0]
        for end in (x.low, x.high)
    )
    return ChannelRanges(ChannelRanges.of_data(low).low, ChannelRanges.of_data(high).high)


def _may_wrap(op: Mean, node: Node) -> bool:
    """Return whether sums of a mean in fixed point may leave int32 where they are shifted left."""
    if op.rescaling is Rescaling.FLOAT32:
        return False
    params = sum_params(op, node.inputs[0].type, node.output.type)
    return params.count * 255 << max(params.multiplier.shift, 0) > INT32_MAX


def _add(node: Node, inputs: list[ChannelRanges]) -> ChannelRanges:
    """Return a sum never decreases with either operand: its ends are the sums of the ends."""
    shapes = {t.shape for t in node.inputs}
    if len(shapes) != 1 or len(inputs) != len(node.inputs):
        return ChannelRanges.full(node.output.type)
    ends = tuple(np.concatenate((r.low, r.high)).astype(np.int8).tobytes() for r in inputs)
    quantisations = tuple(t.type.quantization for t in (*node.inputs, node.output))
    return _sums_of_ends(node.op, quantisations, ends)


@lru_cache(maxsize=512)  # several passes ask for the same ranges, and layers repeat
def _sums_of_ends(
    op: Operator, quantisations: tuple[Quantization | None, ...], ends: tuple[bytes, ...]
) -> ChannelRanges:
    """Return what an addition makes of the ends of its operands, the low ones first."""
    arrays = [np.frombuffer(end, np.int8) for end in ends]
    tensors = [
        Tensor(f"x{i}", TensorType(arrays[0].shape, DType.INT8, quantisation))
        for i, quantisation in enumerate(quantisations)
    ]
    source = SourceLocation("", 0, op.name)
    node = Node(op, tuple(tensors[:-1]), (tensors[-1],), op.name, source)
    (sums,) = evaluate(node, arrays)
    low, high = np.split(sums.astype(np.int64), 2)
    return ChannelRanges(low, high)


def _table(node: Node, x: ChannelRanges) -> ChannelRanges:
    table = lookup_table(node.op, node.inputs[0].type, node.output.type).astype(np.int64)
    pieces = [table[lo + 128 : hi + 129] for lo, hi in zip(x.low, x.high, strict=True)]
    low = np.array([piece.min() for piece in pieces], np.int64)
    return ChannelRanges(low, np.array([piece.max() for piece in pieces], np.int64))


def _reshape(node: Node, inputs: list[ChannelRanges]) -> ChannelRanges:
    x, old = inputs[0], node.inputs[0].shape
    channels = node.output.type.channels
    if old and channels % old[-1] == 0:
        repeat = channels // old[-1]
        return ChannelRanges(np.tile(x.low, repeat), np.tile(x.high, repeat))
    return x.everywhere(channels)


def _pad(node: Node, inputs: list[ChannelRanges]) -> ChannelRanges:
    op, x = node.attributes(Pad), inputs[0]
    if op.before[-1] or op.after[-1] or len(node.inputs) > 1:
        return ChannelRanges.full(node.output.type)
    value = int(op.value)
    return ChannelRanges(np.minimum(x.low, value), np.maximum(x.high, value))


def _concatenation(node: Node, inputs: list[ChannelRanges]) -> ChannelRanges:
    op = node.attributes(Concatenation)
    if len(inputs) != len(node.inputs):
        return ChannelRanges.full(node.output.type)
    if op.axis == len(node.output.shape) - 1:
        return ChannelRanges(
            np.concatenate([r.low for r in inputs]), np.concatenate([r.high for r in inputs])
        )
    low = np.min([r.low for r in inputs], axis=0)
    return ChannelRanges(low, np.max([r.high for r in inputs], axis=0))


_RULES: Mapping[type[Operator], Callable[[Node, list[ChannelRanges]], ChannelRanges]] = (
    MappingProxyType(
        {
            Conv2D: _convolution,
            DepthwiseConv2D: _convolution,
            FullyConnected: _fully_connected,
            AveragePool2D: _by_channel,
            MaxPool2D: _by_channel,
            Mean: _by_channel,
            Add: _add,
            Reshape: _reshape,
            Pad: _pad,
            Concatenation: _concatenation,
        }
    )
)
