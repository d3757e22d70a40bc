"""Drops clamps of fused activations that no input can make bind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Tensor
from microtir.graph.rewriting import Rewrite, with_nodes
from microtir.operators.common.attributes import Activation
from microtir.operators.common.multiplier import activation_range
from microtir.rewrite.facts.channel_ranges import ChannelRanges, channel_ranges, output_range
from microtir.rewrite.optimise.fuse_activation import Carrier

# What is left of an activation without the clamps that do not bind.  A RELU stays: with a clamp at
# the zero point, requantisation need not round negative numbers as TFLite does, which costs more.
_LOOSER: Mapping[Activation, Activation] = MappingProxyType(
    {Activation.RELU6: Activation.RELU, Activation.RELU_N1_TO_1: Activation.NONE}
)


class DropRedundantClamps(Rewrite):
    """Gives int8 operators an activation with fewer clamps where their results stay within it.

    The bounds of `graph.analysis.channel_ranges` are compared with those of the same operator
    without the clamp: only where these lie inside it, too, is it dropped.
    """

    def __call__(self, graph: Graph) -> Graph:
        ranges = channel_ranges(graph)
        return with_nodes(graph, [_without_redundant_clamp(node, ranges) for node in graph.nodes])


def _without_redundant_clamp(node: Node, ranges: Mapping[Tensor, ChannelRanges]) -> Node:
    op = node.op
    if not isinstance(op, Carrier) or op.activation not in _LOOSER:
        return node
    output = node.outputs[0]
    if output.dtype is not DType.INT8:
        return node
    low, high = activation_range(op.activation, output.type)
    looser = replace(node, op=replace(op, activation=_LOOSER[op.activation]))
    wide_range = output_range(looser, output, ranges)
    return looser if low <= wide_range.low.min() and wide_range.high.max() <= high else node
