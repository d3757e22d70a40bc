"""Multiply-accumulate operations of a node: the field's measure of the work of a layer."""

from __future__ import annotations

import math

from microtir.graph.ir import Node
from microtir.graph.ops import Conv2D, Custom, DepthwiseConv2D, FullyConnected


def macs(node: Node) -> int:
    """Multiply-accumulates of one inference, as published figures count them.

    Weights that meet padding count too; operators without weights have none.
    """
    if isinstance(node.op, Conv2D):
        _, height, width, channels = node.inputs[1].shape
        return node.output.type.elements * height * width * channels
    if isinstance(node.op, DepthwiseConv2D):
        _, height, width, _ = node.inputs[1].shape
        return node.output.type.elements * height * width
    if isinstance(node.op, FullyConnected):
        return math.prod(node.inputs[0].shape) * node.inputs[1].shape[0]
    return node.op.function.macs if isinstance(node.op, Custom) else 0
