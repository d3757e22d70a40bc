"""Read TFLite's convolutions."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.graph.ir import Node
from microtir.operators.common import attributes, tflite_schema
from microtir.operators.common import tflite_written as written
from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.common.tflite_windows import explicit_padding, written_padding
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D, sliding_window


@dataclass(frozen=True, slots=True)
class Conv2DOptions(tflite_schema.Options):
    padding: tflite_schema.Padding = tflite_schema.Padding.SAME
    stride_w: int = 1
    stride_h: int = 1
    activation: tflite_schema.TfliteActivation = tflite_schema.TfliteActivation.NONE
    dilation_w: int = 1
    dilation_h: int = 1
    quantized_bias_type: tflite_schema.TfliteType = tflite_schema.TfliteType.FLOAT32


@dataclass(frozen=True, slots=True)
class DepthwiseConv2DOptions(tflite_schema.Options):
    padding: tflite_schema.Padding = tflite_schema.Padding.SAME
    stride_w: int = 1
    stride_h: int = 1
    depth_multiplier: int = 1
    activation: tflite_schema.TfliteActivation = tflite_schema.TfliteActivation.NONE
    dilation_w: int = 1
    dilation_h: int = 1


def conv_2d(operands: Operands) -> Converted:
    """Read CONV_2D: image, weights (O, KH, KW, I of a group), optional bias."""
    options = operands.table(Conv2DOptions)
    op = Conv2D(*_window(operands, options), operands.activation(options.activation))
    return Converted(op, operands.with_weights(options.quantized_bias_type))


def depthwise_conv_2d(operands: Operands) -> Converted:
    """Read DEPTHWISE_CONV_2D: image, weights (1, KH, KW, I*M), optional bias."""
    options = operands.table(DepthwiseConv2DOptions)
    _, _, _, channels = operands.image(0)
    _, _, _, outputs = operands.image(1)
    # Some converters leave the multiplier at 0; the shapes give it.
    multiplier = options.depth_multiplier or outputs // max(channels, 1)
    activation = operands.activation(options.activation)
    op = DepthwiseConv2D(*_window(operands, options), multiplier, activation)
    return Converted(op, operands.with_weights())


def _window(
    operands: Operands, options: Conv2DOptions | DepthwiseConv2DOptions
) -> tuple[tuple[int, int], tuple[int, int], attributes.Padding2D]:
    """Return strides and dilations, rows before columns, and the padding."""
    _, height, width, _ = operands.image(1)
    strides = (options.stride_h, options.stride_w)
    dilations = (options.dilation_h, options.dilation_w)
    padding = explicit_padding(operands, (height, width), strides, dilations, options.padding)
    return strides, dilations, padding


def write_conv_2d(node: Node) -> written.Written | None:
    """Write CONV_2D."""
    op = node.attributes(Conv2D)
    padding = written_padding(node.inputs[0], sliding_window(node))
    if padding is None:
        return None
    (down, right), (high, wide), fused = op.strides, op.dilations, written.activation(op.activation)
    return written.Written(node.inputs, Conv2DOptions(padding, right, down, fused, wide, high))


def write_depthwise_conv_2d(node: Node) -> written.Written | None:
    """Write DEPTHWISE_CONV_2D."""
    op = node.attributes(DepthwiseConv2D)
    padding = written_padding(node.inputs[0], sliding_window(node))
    if padding is None:
        return None
    (down, right), (high, wide), fused = op.strides, op.dilations, written.activation(op.activation)
    options = DepthwiseConv2DOptions(padding, right, down, op.depth_multiplier, fused, wide, high)
    return written.Written(node.inputs, options)


READERS = (
    TfliteReader(
        Conv2D,
        tflite_schema.BuiltinOperator.CONV_2D,
        conv_2d,
        Conv2DOptions,
        (2, 3),
        write=write_conv_2d,
    ),
    TfliteReader(
        DepthwiseConv2D,
        tflite_schema.BuiltinOperator.DEPTHWISE_CONV_2D,
        depthwise_conv_2d,
        DepthwiseConv2DOptions,
        (2, 3),
        write=write_depthwise_conv_2d,
    ),
)
