"""Operators whose results are conditions, a row each."""

import operator
from functools import partial

import numpy as np

from microtir.dtype import DType
from microtir.operators.common.elementwise_formula import broadcast
from microtir.operators.common.elementwise_meaning import plain
from microtir.operators.common.tflite_schema import BuiltinOperator as Tflite
from microtir.operators.common.types import TypeRule, converting
from microtir.operators.conditions import definition as conditions
from microtir.operators.conditions import formula, meaning
from microtir.operators.elementwise import row


def _to_bool(*operands: DType) -> TypeRule:
    return converting(*((dtype, DType.BOOL) for dtype in operands))


_NUMBERS = (DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32, DType.INT64)
_compared = partial(row, inputs=2, multipliers=conditions.multipliers, limits="scales below 1")
_equal = partial(_compared, types=_to_bool(*_NUMBERS, DType.BOOL), quantization=conditions.EQUALITY)
_ordered = partial(_compared, types=_to_bool(*_NUMBERS), quantization=conditions.ORDER)
_logical = partial(row, types=_to_bool(DType.BOOL))

RECORDS = (
    _equal(conditions.Equal, meaning.compare(np.equal), formula.compare(operator.eq),
           tflite=Tflite.EQUAL, onnx="Equal"),
    _equal(conditions.NotEqual, meaning.compare(np.not_equal), formula.compare(operator.ne),
           tflite=Tflite.NOT_EQUAL),
    _ordered(conditions.Greater, meaning.compare(np.greater), formula.compare(operator.gt),
             tflite=Tflite.GREATER, onnx="Greater"),
    _ordered(conditions.GreaterEqual, meaning.compare(np.greater_equal),
             formula.compare(operator.ge),
             tflite=Tflite.GREATER_EQUAL, onnx="GreaterOrEqual"),
    _ordered(conditions.Less, meaning.compare(np.less), formula.compare(operator.lt),
             tflite=Tflite.LESS, onnx="Less"),
    _ordered(conditions.LessEqual, meaning.compare(np.less_equal), formula.compare(operator.le),
             tflite=Tflite.LESS_EQUAL, onnx="LessOrEqual"),
    _logical(conditions.LogicalAnd, plain(np.logical_and), broadcast(operator.and_),
             inputs=2, tflite=Tflite.LOGICAL_AND, onnx="And"),
    _logical(conditions.LogicalOr, plain(np.logical_or), broadcast(operator.or_),
             inputs=2, tflite=Tflite.LOGICAL_OR, onnx="Or"),
    _logical(conditions.LogicalNot, plain(np.logical_not), broadcast(operator.invert),
             tflite=Tflite.LOGICAL_NOT, onnx="Not"),
)  # fmt: skip
