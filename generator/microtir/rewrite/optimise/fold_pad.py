"""Merges PAD into the padding of the convolution that reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from microtir.graph.ir import Graph, Node, Tensor
from microtir.graph.rewriting import Rewrite, with_nodes
from microtir.operators.common.attributes import Padding2D
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.movement.definition import Pad


class FoldPad(Rewrite):
    """Lets convolutions read the image before a PAD that adds the real value 0.

    Exact because the padding of a convolution counts as 0, too. The PAD itself stays for other
    readers; RemoveDeadNodes drops it if there are none. Pooling is left alone: its padding does
    not count at all.
    """

    def __call__(self, graph: Graph) -> Graph:
        producers = graph.producers()
        return with_nodes(graph, [_folded(node, producers) for node in graph.nodes])


def _folded(node: Node, producers: Mapping[Tensor, Node]) -> Node:
    pad = producers.get(node.inputs[0])
    op = node.op
    if not isinstance(op, Conv2D | DepthwiseConv2D) or pad is None or not _adds_border(pad):
        return node
    assert isinstance(pad.op, Pad)
    before, after, own = pad.op.before, pad.op.after, op.padding
    merged = Padding2D(
        top=own.top + before[1],
        bottom=own.bottom + after[1],
        left=own.left + before[2],
        right=own.right + after[2],
    )
    return replace(node, op=replace(op, padding=merged), inputs=(pad.inputs[0], *node.inputs[1:]))


def _adds_border(pad: Node) -> bool:
    """Return whether a node surrounds images with the real value 0."""
    if not isinstance(pad.op, Pad) or len(pad.op.before) != 4 or len(pad.inputs) != 1:
        return False
    source = pad.inputs[0].type
    quant = source.quantization
    zero = 0 if quant is None or source.dtype.is_float else quant.zero_point
    sides = (*pad.op.before[::3], *pad.op.after[::3])
    return pad.op.value == zero and not any(sides)
