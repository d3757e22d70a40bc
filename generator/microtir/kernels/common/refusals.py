"""What several kernels refuse for the same reason."""

from __future__ import annotations

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.convolution.definition import DepthwiseConv2D
from microtir.plan.ir import Refusal


def int8_refusal(node: Node) -> Refusal | None:
    """Refuse a linear operator that is not of int8, or whose weights vary."""
    return _weighted(node, DType.INT8)


def float_refusal(node: Node) -> Refusal | None:
    """Refuse a linear operator that is not of float32, or whose weights vary."""
    return _weighted(node, DType.FLOAT32)


def _weighted(node: Node, dtype: DType) -> Refusal | None:
    image, weights = node.inputs[:2]
    if image.dtype is not dtype or weights.dtype is not dtype:
        return Refusal.TYPES
    return Refusal.WEIGHTS if weights.data is None else None


def mixed_refusal(node: Node) -> Refusal | None:
    """Refuse a depthwise convolution, unless it has one input channel."""
    is_depthwise = isinstance(node.op, DepthwiseConv2D) and node.inputs[0].shape[-1] > 1
    return Refusal.MIXES_CHANNELS if is_depthwise else None


def channelwise_refusal(node: Node) -> Refusal | None:
    """Refuse all but depthwise convolutions over one image, one output per input channel."""
    op = node.op
    if not isinstance(op, DepthwiseConv2D):
        return Refusal.OPERATOR
    if op.depth_multiplier != 1:
        return Refusal.MULTIPLIER
    return None if node.inputs[0].shape[0] == 1 else Refusal.IMAGES


def depthwise_refusal(node: Node) -> Refusal | None:
    """Refuse as `channelwise_refusal` does, and what is not of int8."""
    return int8_refusal(node) or channelwise_refusal(node)


def activations_refusal(node: Node) -> Refusal | None:
    """Refuse operands that are not two int8 activations of the shape of the result."""
    if any(t.dtype is not DType.INT8 for t in node.inputs):
        return Refusal.TYPES
    shape = node.output.shape
    alike = all(t.shape == shape and not t.is_constant for t in node.inputs)
    return None if alike else Refusal.SHAPES
