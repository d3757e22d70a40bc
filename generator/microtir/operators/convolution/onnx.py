"""Read ONNX's convolutions."""

from __future__ import annotations

import math
from dataclasses import replace

from microtir.errors import ExportProblem
from microtir.graph.ir import Tensor
from microtir.operators.arithmetic.definition import Add
from microtir.operators.common import onnx_functions, onnx_layers, onnx_layout, onnx_windows
from microtir.operators.common.onnx_integer_sums import EXACT_PRODUCTS, centred, exact_sum
from microtir.operators.common.onnx_operands import MICROSOFT, OnnxNode, OnnxReader
from microtir.operators.common.onnx_parts import along
from microtir.operators.common.onnx_quantized import Scaling, requantised
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.convolution_3d.definition import Conv3D
from microtir.operators.movement.definition import Transpose

ATTRIBUTES = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")


def conv(node: OnnxNode) -> Tensor:
    """Read Conv: image (N, C, ...), weights (O, C / group, ...), optional bias (O,)."""
    image, weights = node.input(0), node.input(1)
    rank = len(image.shape)
    if not 3 <= rank <= 5 or len(weights.shape) != rank:
        raise node.malformed(
            f"an image of shape {image.shape} and weights of {weights.shape}",
            "both of the same rank, from 3 to 5",
        )
    window = onnx_windows.window_of(node, image.shape[2:], weights.shape[2:])
    _check_groups(node, image, weights)
    node.known(1, "the weights")
    inner, window = onnx_windows.without_margins(node, image, window)
    node = node.with_inputs(inner, *node.inputs[1:])
    return _conv_3d(node, window) if rank == 5 else _conv_2d(node, window)


def _check_groups(node: OnnxNode, image: Tensor, weights: Tensor) -> None:
    groups = node.integer("group", 1)
    if groups < 1 or weights.shape[1] * groups != image.shape[1] or weights.shape[0] % groups:
        raise node.malformed(
            f"weights of shape {weights.shape} in {groups} groups for {image.shape[1]} channels",
            "(O, C / group, ...), and O a multiple of the groups",
        )


def _conv_2d(node: OnnxNode, window: onnx_windows.OnnxWindow) -> Tensor:
    rank = len(node.input(0).shape)
    weights = onnx_layout.channels_last(node, node.input(1))
    op = Conv2D(window.planar_strides, window.planar_dilations, window.padding)
    image = onnx_layout.channels_last(node, node.input(0))
    return onnx_layout.channels_first(node, onnx_layers.with_bias(node, op, image, weights), rank)


def _conv_3d(node: OnnxNode, window: onnx_windows.OnnxWindow) -> Tensor:
    if node.integer("group", 1) != 1:
        raise node.unsupported(
            "it has groups of channels over a volume", "one group", "split the layer by hand"
        )
    volume = node.emit(Transpose((0, 2, 3, 4, 1)), node.input(0))
    weights = node.emit(Transpose((2, 3, 4, 1, 0)), node.input(1))
    (s0, s1, s2), (d0, d1, d2) = window.strides, window.dilations
    (b0, b1, b2), (a0, a1, a2) = window.before, window.after
    op = Conv3D((s0, s1, s2), (d0, d1, d2), (b0, b1, b2), (a0, a1, a2))
    return node.emit(Transpose((0, 4, 1, 2, 3)), onnx_layers.with_bias(node, op, volume, weights))


def fused_conv(node: OnnxNode) -> Tensor:
    """Read com.microsoft's FusedConv: a convolution, a term, and a function of their sum."""
    summand = node.optional(3)
    result = conv(replace(node, inputs=node.inputs[:3]))
    if summand is not None:
        result = node.emit(Add(), result, summand)
    has_numbers = node.has("activation_params")
    return onnx_functions.fused_function(
        node, result, node.list_of_numbers("activation_params") if has_numbers else ()
    )


def qlinear_conv(node: OnnxNode) -> Tensor:
    """Read QLinearConv: image and weights with scale and zero point, those of the output, bias.

    The bias is of int32, with the product of both scales.
    """
    image, weights = Scaling(*node.inputs_at(1, 2)), Scaling(*node.inputs_at(4, 5), axis=0)
    output = Scaling(*node.inputs_at(6, 7))
    return requantised(node, ((0, image), (3, weights)), conv, output, bias=8)


def conv_integer(node: OnnxNode) -> Tensor:
    """Read ConvInteger: sums of int32, exact because floats add few products at a time."""
    image = centred(node, node.input(0), node.optional(2))
    weights = centred(node, node.input(1), node.optional(3))
    group, depth = node.integer("group", 1), weights.shape[1]
    taps = math.prod(weights.shape[2:])
    at_once = depth if group > 1 else max(1, EXACT_PRODUCTS // max(taps, 1))
    if at_once * taps > EXACT_PRODUCTS:
        raise node.unsupported(
            f"it adds {at_once * taps} products",
            f"at most {EXACT_PRODUCTS}",
            "quantise the model statically",
            ExportProblem.DYNAMIC_QUANTISATION,
        )

    def part(first: int, count: int) -> Tensor:
        operands = image, weights
        if group == 1:
            operands = along(node, image, 1, first, count), along(node, weights, 1, first, count)
        return conv(replace(node, inputs=operands))

    return exact_sum(node, depth, at_once, part)


ONNX_READERS = (
    OnnxReader("Conv", conv, (2, 3), ATTRIBUTES),
    OnnxReader(
        "FusedConv",
        fused_conv,
        (2, 4),
        (*ATTRIBUTES, "activation", "activation_params"),
        domain=MICROSOFT,
    ),
    OnnxReader("QLinearConv", qlinear_conv, (8, 9), ATTRIBUTES),
    OnnxReader("ConvInteger", conv_integer, (2, 4), ATTRIBUTES, ranks=(3, 3)),
)
