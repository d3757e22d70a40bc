"""Refusals that several kernels share."""

from __future__ import annotations

from typing import TypeVar

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.common.sums import any_value
from microtir.operators.convolution.definition import DepthwiseConv2D
from microtir.operators.recurrent.definition import GATES, gate_sums, svdf_sums
from microtir.plan.ir import Refusal

Fact = TypeVar("Fact")


def asked(fact: Fact | None) -> Fact:
    """Return what a kernel needs of a layer; its refusal was asked, and is none without it."""
    assert fact is not None, "the refusal was asked"
    return fact


def type_refusal(node: Node, dtype: DType) -> Refusal | None:
    """Refuse a linear operator whose data are not of a type, or whose weights vary.

    Weights of int16, beside int8 data, only reach kernels that say so.
    """
    image, weights = node.inputs[:2]
    of_weights = (
        {dtype} if dtype.is_float else {DType.INT8, *([DType.INT16] * (dtype is DType.INT8))}
    )
    if image.dtype is not dtype or weights.dtype not in of_weights:
        return Refusal.TYPES
    return Refusal.WEIGHTS if weights.data is None else None


def int8_refusal(node: Node) -> Refusal | None:
    """Refuse a linear operator that is not of int8, or whose weights vary."""
    return type_refusal(node, DType.INT8)


def mixed_refusal(node: Node) -> Refusal | None:
    """Refuse a convolution in groups and a depthwise one, unless it has one input channel."""
    channels = node.inputs[0].shape[-1]
    seen = 1 if isinstance(node.op, DepthwiseConv2D) else node.inputs[1].shape[-1]
    return None if seen == channels else Refusal.MIXES_CHANNELS


def channelwise_refusal(node: Node, *, multiplies: bool = False) -> Refusal | None:
    """Refuse all but depthwise convolutions over one image, one output per input channel.

    Several outputs are no reason where a kernel `multiplies` channels.
    """
    op = node.op
    if not isinstance(op, DepthwiseConv2D):
        return Refusal.OPERATOR
    if op.depth_multiplier != 1 and not multiplies:
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
    are_alike = all(t.shape == shape and not t.is_constant for t in node.inputs)
    return None if are_alike else Refusal.SHAPES


def recurrent_refusal(node: Node, element: DType, weight: DType) -> Refusal | None:
    """Refuse an LSTM of other types, whose weights vary, or whose sums leave 32 bits."""
    weights = node.inputs[3 : 3 + 2 * GATES]
    types = {tensor.dtype for tensor in weights}
    # A hybrid one may multiply the input, or the hidden state, with floats.
    legal = {weight, element} if element.is_float else {weight}
    if node.inputs[0].dtype is not element or weight not in types or types - legal:
        return Refusal.TYPES
    if not all(tensor.is_constant for tensor in node.inputs[3:]):
        return Refusal.WEIGHTS
    if element.is_float:
        return None
    sums = gate_sums(node, any_value(element))
    return None if sums is not None and all(part.fits for part in sums) else Refusal.SUMS


def svdf_refusal(node: Node, element: DType, weight: DType) -> Refusal | None:
    """Refuse an SVDF of other types, whose weights vary, or whose features leave 32 bits."""
    if node.inputs[0].dtype is not element or node.inputs[2].dtype is not weight:
        return Refusal.TYPES
    if not all(tensor.is_constant for tensor in node.inputs[2:]):
        return Refusal.WEIGHTS
    if element.is_float:
        return None
    sums = svdf_sums(node, any_value(element))
    return None if sums is not None and sums.features.fits else Refusal.SUMS
