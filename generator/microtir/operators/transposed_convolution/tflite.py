"""Read TFLite's transposed convolutions."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from microtir.graph.ir import Node
from microtir.operators.common import tflite_schema, tflite_windows
from microtir.operators.common import tflite_written as written
from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.transposed_convolution.definition import TransposeConv


@dataclass(frozen=True, slots=True)
class TransposeConvOptions(tflite_schema.Options):
    padding: tflite_schema.Padding = tflite_schema.Padding.SAME
    stride_w: int = 0
    stride_h: int = 0
    activation: tflite_schema.TfliteActivation = tflite_schema.TfliteActivation.NONE
    quantized_bias_type: tflite_schema.TfliteType = tflite_schema.TfliteType.FLOAT32


def transpose_conv(operands: Operands) -> Converted:
    """Read TRANSPOSE_CONV: shape of the output, weights (O, KH, KW, I), image, optional bias.

    tflite-micro does not look at the shape but takes that of the output tensor.  Here it must be
    the same where it is known; where it is not, the output tensor's counts.
    """
    options = operands.table(TransposeConvOptions)
    stated = operands.input(0).data
    shape = None if stated is None else tuple(int(extent) for extent in stated.reshape(-1))
    output = operands.output.shape if shape is None else shape
    if len(output) != 4:
        raise operands.malformed(f"its output has the shape {output}", "four dimensions")
    _, height, width, _ = operands.image(1)
    strides = options.stride_h, options.stride_w
    tflite_windows.check_window(operands, (height, width), strides)
    before = (0, 0)
    if options.padding is tflite_schema.Padding.SAME:
        # As of a convolution that makes the input of the output.
        before = (
            tflite_windows.same_padding(output[1], height, strides[0])[0],
            tflite_windows.same_padding(output[2], width, strides[1])[0],
        )
    op = TransposeConv(strides, before, operands.activation(options.activation))
    operands.image(2)
    inputs = operands.input(2), operands.require_computable(1, "the weights")
    if operands.optional(3) is None:
        return Converted(op, inputs, shape)
    return Converted(op, (*inputs, operands.require_computable(3, "the bias")), shape)


def write_transpose_conv(node: Node) -> written.Written | None:
    """Write TRANSPOSE_CONV."""
    op, (image, weights, *bias) = node.attributes(TransposeConv), node.inputs
    axes = list(zip(node.output.shape[1:3], weights.shape[1:3], op.strides, strict=True))
    padding = tflite_schema.Padding.SAME
    # Where both paddings would do, LiteRT asks for the one whose convolution gives the image.
    if op.before == (0, 0) and image.shape[1:3] == tuple((n - k + s) // s for n, k, s in axes):
        padding = tflite_schema.Padding.VALID
    elif op.before != tuple(tflite_windows.same_padding(*axis)[0] for axis in axes):
        if op.before != (0, 0):
            return None
        padding = tflite_schema.Padding.VALID
    down, right = op.strides
    options = TransposeConvOptions(padding, right, down, written.activation(op.activation))
    shape = written.numbers(node, "shape", node.output.shape)
    return written.Written((shape, weights, image, *bias), options)


_SAME, _VALID = 1, 2


def transpose_conv_bias(operands: Operands) -> Converted:
    """Read MediaPipe's Convolution2DTransposeBias: image, weights (O, KH, KW, I), bias.

    Its options are the C structure of TRANSPOSE_CONV: padding, column stride, row stride, and what
    its kernel does not read.  The extents of the output are the smallest that SAME or VALID
    convolutions could have made the image of.
    """
    if len(operands.custom_options) < 12:
        what = f"{len(operands.custom_options)} bytes of options"
        raise operands.malformed(what, "12: padding and strides as int32")
    padding, right, down = struct.unpack("<3i", operands.custom_options[:12])
    if padding not in (_SAME, _VALID):
        raise operands.malformed(f"its padding is {padding}", "1 (SAME) or 2 (VALID)")
    batch, *sizes, _ = operands.image(0)
    outputs, *taps, _ = operands.image(1)
    strides, window = (down, right), (taps[0], taps[1])
    tflite_windows.check_window(operands, window, strides)
    if not operands.input(0).dtype.is_float:
        raise operands.unsupported(
            f"its types are {operands.input(0).dtype.value}", "float32", "convert it as float32"
        )
    axes = list(zip(sizes, window, strides, strict=True))
    cut = [max(0, k - (n - 1) % s - 1) if padding == _SAME else 0 for n, k, s in axes]
    rows, columns = (s * (n - 1) + k - c for (n, k, s), c in zip(axes, cut, strict=True))
    op = TransposeConv(strides, (cut[0] // 2, cut[1] // 2))
    return Converted(op, operands.with_weights(), (batch, rows, columns, outputs))


READERS = (
    TfliteReader(
        TransposeConv,
        tflite_schema.BuiltinOperator.TRANSPOSE_CONV,
        transpose_conv,
        TransposeConvOptions,
        (3, 4),
        write=write_transpose_conv,
    ),
    TfliteReader(TransposeConv, "Convolution2DTransposeBias", transpose_conv_bias, inputs=(3, 3)),
)
