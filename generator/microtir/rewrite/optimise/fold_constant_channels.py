"""Removes channels that hold the same value for every input, and what only computes them.

Training often leaves channels whose ReLU can never open.  Interval arithmetic over the quantised
graph proves them constant with no data (`graph.analysis.channel_ranges`); what they add to a
consumer's sum is then a constant, too, and moves into its bias.  Exact, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Quantization, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.graph.rewriting import Rewrite
from microtir.operators.common.fixed_point import wrap
from microtir.operators.common.linear import bias_of
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D, groups_of
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.movement.definition import Reshape
from microtir.operators.pooling.definition import AveragePool2D, MaxPool2D
from microtir.operators.reduction.definition import Mean
from microtir.rewrite.facts.channel_ranges import ChannelRanges, channel_ranges, sees_border
from microtir.rewrite.facts.macs import macs

Mask = npt.NDArray[np.bool_]


class FoldConstantChannels(Rewrite):
    """Drops channels proven constant for all inputs, on the side of their producer, too.

    A constant channel folds into a convolution's bias if it holds the value of the padding, or if
    no window leaves the image; into a fully connected layer's bias always.  A channel without
    weights folds whatever it holds.  A tensor keeps one channel at least.
    """

    def __call__(self, graph: Graph) -> Graph:
        ranges = channel_ranges(graph)
        needed = _needed_channels(graph, ranges)
        _settle(graph, needed)
        if all(mask.all() for mask in needed.values()):
            return graph
        return _Rewriter(ranges, needed).run(graph)


# --- which channels somebody needs --------------------------------------------------------------


def _needed_channels(graph: Graph, ranges: Mapping[Tensor, ChannelRanges]) -> dict[Tensor, Mask]:
    """Return the channels of each activation that must be there, from the outputs up."""
    produced = {t for node in graph.nodes if _can_narrow(node) for t in node.outputs}
    needed = {
        t: np.full(t.shape[-1], t not in produced or t in graph.outputs, np.bool_)
        for node in graph.nodes
        for t in node.outputs
        if t.shape
    }
    for node in reversed(graph.nodes):
        for tensor in node.outputs:
            if tensor in needed and not needed[tensor].any():
                needed[tensor][0] = True
        for position, tensor in enumerate(node.inputs):
            if tensor in needed:
                demand = _DEMANDS.get(type(node.op), _all)
                mask = demand(node, ranges, needed) if position == 0 else _all(node, ranges, needed)
                needed[tensor] = needed[tensor] | mask
    return needed


def _can_narrow(node: Node) -> bool:
    """Return whether an operator can be made to produce fewer channels.

    Not of floats, also where nobody reads them: what is folded into a bias is an integer.
    """
    if isinstance(node.op, Conv2D | DepthwiseConv2D):
        return _is_int8_linear(node)
    return _follows(node) and node.inputs[0].dtype is DType.INT8


def _follows(node: Node) -> bool:
    """Return whether channels of an output are those of the input, none made of several."""
    if isinstance(node.op, Mean):
        return len(node.inputs[0].shape) - 1 not in node.op.axes
    return type(node.op) in _FOLLOWERS


Demand = Callable[[Node, Mapping[Tensor, ChannelRanges], Mapping[Tensor, Mask]], Mask]


def _all(
    _node: Node, _ranges: Mapping[Tensor, ChannelRanges], _needed: Mapping[Tensor, Mask]
) -> Mask:
    return np.ones(1, np.bool_)


def _foldable(node: Node, ranges: Mapping[Tensor, ChannelRanges]) -> Mask:
    """Return the input channels of a linear operator whose share of its sums is a constant."""
    x = ranges.get(node.inputs[0])
    channels = node.inputs[0].type.channels
    if x is None or not _is_int8_linear(node):
        return np.zeros(channels, np.bool_)
    constant = x.is_constant
    if isinstance(node.op, Conv2D) and sees_border(node):
        constant = constant & (x.low == node.inputs[0].type.quant.zero_point)
    weights = node.inputs[1].values
    if weights.shape[-1] != channels:
        return constant
    return constant | ~weights.any(axis=tuple(range(weights.ndim - 1)))


def _is_int8_linear(node: Node) -> bool:
    """Return whether all is int8, and channels may go: of a group they may not, one by one."""
    if isinstance(node.op, Conv2D) and groups_of(node) > 1:
        return False
    image, weights = node.inputs[:2]
    return image.dtype is DType.INT8 and weights.dtype is DType.INT8 and weights.data is not None


def _mixes(
    node: Node, ranges: Mapping[Tensor, ChannelRanges], _needed: Mapping[Tensor, Mask]
) -> Mask:
    """Return the channels that a convolution needs: those that do not fold."""
    return ~_foldable(node, ranges)


def _dense(
    node: Node, ranges: Mapping[Tensor, ChannelRanges], needed: Mapping[Tensor, Mask]
) -> Mask:
    """Return the channels a dense layer needs: columns that do not fold, if they are channels."""
    if node.inputs[0].type.channels != node.inputs[1].shape[-1]:
        return _all(node, ranges, needed)
    return ~_foldable(node, ranges)


def _keeps_channels(
    node: Node, _ranges: Mapping[Tensor, ChannelRanges], needed: Mapping[Tensor, Mask]
) -> Mask:
    """Keep channel c of the input, or c // multiplier, for channel c of the output."""
    if not _follows(node):
        return np.ones(1, np.bool_)
    mask = needed[node.output]
    if isinstance(node.op, DepthwiseConv2D):
        if not _is_int8_linear(node):
            return np.ones(1, np.bool_)
        return np.asarray(mask.reshape(-1, node.op.depth_multiplier).any(axis=1))
    return mask if node.inputs[0].dtype is DType.INT8 else np.ones_like(mask)


def _through_reshape(
    node: Node, ranges: Mapping[Tensor, ChannelRanges], needed: Mapping[Tensor, Mask]
) -> Mask:
    """Return the channels needed in front of a reshape.

    Each channel stays a channel if the last axis stays, or takes in whole pixels.
    """
    old, new = node.inputs[0].shape, node.output.shape
    if not _pixels_per_row(old, new):
        return _all(node, ranges, needed)
    return np.asarray(needed[node.output].reshape(-1, old[-1]).any(axis=0))


def _pixels_per_row(old: tuple[int, ...], new: tuple[int, ...]) -> int:
    """Return how many pixels of the old shape one index row of the new holds.

    0 if pixels are cut.
    """
    if not old or not new or new[-1] % old[-1]:
        return 0
    return new[-1] // old[-1]


_DEMANDS: Mapping[type[Operator], Demand] = MappingProxyType(
    {
        Conv2D: _mixes,
        FullyConnected: _dense,
        DepthwiseConv2D: _keeps_channels,
        AveragePool2D: _keeps_channels,
        MaxPool2D: _keeps_channels,
        Mean: _keeps_channels,
        Reshape: _through_reshape,
    }
)
# Operators that give the channels of their input; MEAN may.
_FOLLOWERS = frozenset({DepthwiseConv2D, AveragePool2D, MaxPool2D, Reshape})


def _settle(graph: Graph, needed: dict[Tensor, Mask]) -> None:
    """Keep exactly the channels whose input is kept, where outputs follow inputs.

    Another consumer may need more of the input than this operator passes on.
    """
    for node in graph.nodes:
        x, y = node.inputs[0], node.outputs[0]
        if not _follows(node):
            continue
        repeat = node.op.depth_multiplier if isinstance(node.op, DepthwiseConv2D) else 1
        mask = np.repeat(needed.get(x, np.ones(x.type.channels, np.bool_)), repeat)
        if isinstance(node.op, Reshape):
            pixels = _pixels_per_row(x.shape, y.shape)
            mask = np.tile(mask, pixels) if pixels else np.ones(y.shape[-1:] or 1, np.bool_)
        needed[y] = mask


# --- the rewrite --------------------------------------------------------------------------------


@dataclass(slots=True)
class _Rewriter:
    """Builds the graph again with fewer channels; `narrowed` holds the tensors that lost some."""

    ranges: Mapping[Tensor, ChannelRanges]
    needed: dict[Tensor, Mask]
    narrowed: dict[Tensor, Tensor]

    def __init__(self, ranges: Mapping[Tensor, ChannelRanges], needed: dict[Tensor, Mask]) -> None:
        self.ranges, self.needed, self.narrowed = ranges, needed, {}

    def run(self, graph: Graph) -> Graph:
        return replace(graph, nodes=tuple(self._node(node) for node in graph.nodes))

    def _node(self, node: Node) -> Node:
        x, y = node.inputs[0], node.outputs[0]
        mask_in = self._mask(x)
        is_producer = isinstance(node.op, Conv2D) or _follows(node)
        mask_out = self._mask(y) if is_producer else np.ones(1, np.bool_)
        if mask_in.all() and mask_out.all():
            return node
        inputs = (self.narrowed.get(x, x), *(self.narrowed.get(t, t) for t in node.inputs[1:]))
        if isinstance(node.op, Conv2D | DepthwiseConv2D | FullyConnected):
            inputs = (inputs[0], *self._linear_constants(node, mask_in, mask_out))
        if not mask_out.all():
            self.narrowed[y] = self._narrowed(node, y, mask_out)
        outputs = tuple(self.narrowed.get(t, t) for t in node.outputs)
        source = replace(node.source, macs=node.source.macs or macs(node))
        return replace(node, inputs=inputs, outputs=outputs, source=source)

    def _mask(self, tensor: Tensor) -> Mask:
        return self.needed.get(tensor, np.ones(1, np.bool_))

    def _narrowed(self, node: Node, tensor: Tensor, mask: Mask) -> Tensor:
        """Return the tensor without the channels that nobody needs."""
        shape = (*tensor.shape[:-1], int(mask.sum()))
        return replace(tensor, type=replace(tensor.type, shape=shape))

    def _linear_constants(self, node: Node, mask_in: Mask, mask_out: Mask) -> tuple[Tensor, Tensor]:
        """Return weights and bias for the channels that are left."""
        weights = node.inputs[1]
        bias = bias_of(node)
        data = weights.values
        if isinstance(node.op, DepthwiseConv2D):
            data = data[..., mask_out] if mask_out.size > 1 else data
        else:
            if not mask_in.all():
                bias = bias + self._share(node, data, mask_in)
                data = data[..., mask_in]
            data = data[mask_out] if mask_out.size > 1 else data
        bias = bias[mask_out] if mask_out.size > 1 else bias
        # It may leave int32 only where sums may, too, and there they wrap.
        return (
            _constant(weights, np.ascontiguousarray(data), mask_out),
            _constant(self._bias_tensor(node), wrap(bias).astype(np.int32), mask_out),
        )

    def _share(self, node: Node, data: npt.NDArray[Any], mask_in: Mask) -> npt.NDArray[np.int64]:
        """Return what the removed channels add to the sum of each output channel."""
        x = node.inputs[0]
        offset = (self.ranges[x].low - x.type.quant.zero_point)[~mask_in]
        removed = data[..., ~mask_in].astype(np.int64) * offset
        total: npt.NDArray[np.int64] = removed.reshape(len(data), -1).sum(axis=1)
        return total

    def _bias_tensor(self, node: Node) -> Tensor:
        if len(node.inputs) > 2:
            return node.inputs[2]
        name = f"{node.outputs[0].name}/folded_bias"
        return Tensor(name, TensorType((node.output.shape[-1],), DType.INT32))


def _constant(like: Tensor, data: npt.NDArray[Any], mask: Mask) -> Tensor:
    """Return a constant with new data, and the scales of the channels that are left."""
    quantization = like.type.quantization
    if quantization is not None and len(quantization.scales) == mask.size > 1:
        quantization = Quantization(
            tuple(s for s, keep in zip(quantization.scales, mask, strict=True) if keep),
            tuple(z for z, keep in zip(quantization.zero_points, mask, strict=True) if keep),
            quantization.axis,
        )
    return Tensor(like.name, TensorType(data.shape, like.dtype, quantization), data)
