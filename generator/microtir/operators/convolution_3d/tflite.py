"""Read TFLite's convolutions over volumes."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.graph.ir import Node
from microtir.operators.common import tflite_schema, tflite_windows
from microtir.operators.common import tflite_written as written
from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.convolution_3d.definition import Conv3D, Triple


@dataclass(frozen=True, slots=True)
class Conv3DOptions(tflite_schema.Options):
    padding: tflite_schema.Padding = tflite_schema.Padding.SAME
    stride_d: int = 1
    stride_w: int = 1
    stride_h: int = 1
    activation: tflite_schema.TfliteActivation = tflite_schema.TfliteActivation.NONE
    dilation_d: int = 1
    dilation_w: int = 1
    dilation_h: int = 1


def conv_3d(operands: Operands) -> Converted:
    """Read CONV_3D: volume, weights (KD, KH, KW, I, O), optional bias."""
    options = operands.table(Conv3DOptions)
    volume, taps = operands.input(0).shape, operands.input(1).shape
    if len(volume) != 5 or len(taps) != 5:
        raise operands.malformed(f"shapes {volume} and {taps}", "five dimensions")
    strides = options.stride_d, options.stride_h, options.stride_w
    dilations = options.dilation_d, options.dilation_h, options.dilation_w
    window = taps[0], taps[1], taps[2]
    tflite_windows.check_window(operands, window, strides, dilations)
    before: Triple = (0, 0, 0)
    after: Triple = (0, 0, 0)
    if options.padding is tflite_schema.Padding.SAME:
        axes = zip(volume[1:4], window, strides, dilations, strict=True)
        (d0, d1), (h0, h1), (w0, w1) = (tflite_windows.same_padding(*axis) for axis in axes)
        before, after = (d0, h0, w0), (d1, h1, w1)
    activation = operands.activation(options.activation)
    op = Conv3D(strides, dilations, before, after, activation)
    return Converted(op, operands.with_weights())


def write_conv_3d(node: Node) -> written.Written | None:
    """Write CONV_3D."""
    op, (volume, taps) = node.attributes(Conv3D), (t.shape for t in node.inputs[:2])
    axes = zip(volume[1:4], taps[:3], op.strides, op.dilations, strict=True)
    same = [tflite_windows.same_padding(*axis) for axis in axes]
    padding = tflite_schema.Padding.SAME
    if not any((*op.before, *op.after)):
        padding = tflite_schema.Padding.VALID
    elif list(zip(op.before, op.after, strict=True)) != same:
        return None
    (depth, down, right), (deep, high, wide) = op.strides, op.dilations
    fused = written.activation(op.activation)
    options = Conv3DOptions(padding, depth, right, down, fused, deep, wide, high)
    return written.Written(node.inputs, options)


READERS = (
    TfliteReader(
        Conv3D,
        tflite_schema.BuiltinOperator.CONV_3D,
        conv_3d,
        Conv3DOptions,
        (2, 3),
        write=write_conv_3d,
    ),
)
