"""Readers of TFLite's pooling operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeVar

from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.common.tflite_schema import Activation, BuiltinOperator, Options, Padding
from microtir.operators.common.tflite_windows import explicit_padding
from microtir.operators.pooling.definition import AveragePool2D, MaxPool2D, Pool2D

PoolT = TypeVar("PoolT", bound=Pool2D)


@dataclass(frozen=True, slots=True)
class Pool2DOptions(Options):
    """Options of AVERAGE_POOL_2D and MAX_POOL_2D."""

    union_type: ClassVar[int] = 5
    padding: Padding = Padding.SAME
    stride_w: int = 1
    stride_h: int = 1
    filter_w: int = 1
    filter_h: int = 1
    activation: Activation = Activation.NONE


def average_pool_2d(operands: Operands) -> Converted:
    """Read AVERAGE_POOL_2D."""
    return _pool(operands, AveragePool2D)


def max_pool_2d(operands: Operands) -> Converted:
    """Read MAX_POOL_2D."""
    return _pool(operands, MaxPool2D)


def _pool(operands: Operands, kind: type[PoolT]) -> Converted:
    options = operands.table(Pool2DOptions)
    window = (options.filter_h, options.filter_w)
    strides = (options.stride_h, options.stride_w)
    padding = explicit_padding(operands, window, strides, (1, 1), options.padding)
    op = kind(window, strides, padding, operands.activation(options.activation))
    return Converted(op, (operands.input(0),))


READERS = (
    TfliteReader(AveragePool2D, BuiltinOperator.AVERAGE_POOL_2D, average_pool_2d, Pool2DOptions),
    TfliteReader(MaxPool2D, BuiltinOperator.MAX_POOL_2D, max_pool_2d, Pool2DOptions),
)
