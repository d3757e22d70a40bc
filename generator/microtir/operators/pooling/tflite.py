"""Read TFLite's pooling operators."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.graph.ir import Node
from microtir.operators.common import tflite_operands, tflite_schema, unlike_scales
from microtir.operators.common import tflite_written as written
from microtir.operators.common.tflite_windows import explicit_padding, written_padding
from microtir.operators.pooling import definition as pooling


@dataclass(frozen=True, slots=True)
class Pool2DOptions(tflite_schema.Options):
    """Options of all pooling operators."""

    padding: tflite_schema.Padding = tflite_schema.Padding.SAME
    stride_w: int = 1
    stride_h: int = 1
    filter_w: int = 1
    filter_h: int = 1
    activation: tflite_schema.TfliteActivation = tflite_schema.TfliteActivation.NONE


def write_pool(node: Node) -> written.Written | None:
    """Write all pooling operators."""
    op = node.attributes(pooling.Pool2D)
    padding = written_padding(node.inputs[0], pooling.sliding_window(node))
    if padding is None:
        return None
    (down, right), (high, wide) = op.strides, op.window
    fused = written.activation(op.activation)
    return written.Written(node.inputs, Pool2DOptions(padding, right, down, wide, high, fused))


def _pool(
    op: type[pooling.Pool2D], code: tflite_schema.BuiltinOperator
) -> tflite_operands.TfliteReader:
    def read(operands: tflite_operands.Operands) -> tflite_operands.Converted:
        options = operands.table(Pool2DOptions)
        window = (options.filter_h, options.filter_w)
        strides = (options.stride_h, options.stride_w)
        padding = explicit_padding(operands, window, strides, (1, 1), options.padding)
        attributes = op(window, strides, padding, operands.activation(options.activation))
        return tflite_operands.Converted(attributes, (operands.input(0),))

    return tflite_operands.TfliteReader(
        op, code, read, Pool2DOptions, moved=unlike_scales.POOLED, write=write_pool
    )


READERS = (
    _pool(pooling.AveragePool2D, tflite_schema.BuiltinOperator.AVERAGE_POOL_2D),
    _pool(pooling.MaxPool2D, tflite_schema.BuiltinOperator.MAX_POOL_2D),
    _pool(pooling.L2Pool2D, tflite_schema.BuiltinOperator.L2_POOL_2D),
)
