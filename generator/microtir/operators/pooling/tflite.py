"""Read TFLite's pooling operators."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.common.tflite_schema import (
    BuiltinOperator,
    Options,
    Padding,
    TfliteActivation,
)
from microtir.operators.common.tflite_windows import explicit_padding
from microtir.operators.common.unlike_scales import POOLED
from microtir.operators.pooling.definition import AveragePool2D, L2Pool2D, MaxPool2D, Pool2D


@dataclass(frozen=True, slots=True)
class Pool2DOptions(Options):
    """Options of all pooling operators."""

    padding: Padding = Padding.SAME
    stride_w: int = 1
    stride_h: int = 1
    filter_w: int = 1
    filter_h: int = 1
    activation: TfliteActivation = TfliteActivation.NONE


def _pool(op: type[Pool2D], code: BuiltinOperator) -> TfliteReader:
    def read(operands: Operands) -> Converted:
        options = operands.table(Pool2DOptions)
        window = (options.filter_h, options.filter_w)
        strides = (options.stride_h, options.stride_w)
        padding = explicit_padding(operands, window, strides, (1, 1), options.padding)
        attributes = op(window, strides, padding, operands.activation(options.activation))
        return Converted(attributes, (operands.input(0),))

    return TfliteReader(op, code, read, Pool2DOptions, moved=POOLED)


READERS = (
    _pool(AveragePool2D, BuiltinOperator.AVERAGE_POOL_2D),
    _pool(MaxPool2D, BuiltinOperator.MAX_POOL_2D),
    _pool(L2Pool2D, BuiltinOperator.L2_POOL_2D),
)
