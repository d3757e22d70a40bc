"""Read TFLite's comparisons and logical operators."""

from __future__ import annotations

from microtir.graph.operator import Operator
from microtir.operators.common.tflite_operands import TfliteReader, without_attributes
from microtir.operators.common.tflite_schema import BuiltinOperator, options_without_fields
from microtir.operators.conditions.definition import (
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    LogicalAnd,
    LogicalNot,
    LogicalOr,
    NotEqual,
)


def _reader(op: Operator, code: BuiltinOperator, table: int, inputs: int = 2) -> TfliteReader:
    """Return the reader of an operator whose table of options has a number and no fields."""
    options = options_without_fields(f"{type(op).__name__}Options", table)
    return TfliteReader(type(op), code, without_attributes(op), options, (inputs, inputs))


READERS = (
    _reader(Equal(), BuiltinOperator.EQUAL, 53),
    _reader(NotEqual(), BuiltinOperator.NOT_EQUAL, 54),
    _reader(Greater(), BuiltinOperator.GREATER, 44),
    _reader(GreaterEqual(), BuiltinOperator.GREATER_EQUAL, 45),
    _reader(Less(), BuiltinOperator.LESS, 41),
    _reader(LessEqual(), BuiltinOperator.LESS_EQUAL, 46),
    _reader(LogicalAnd(), BuiltinOperator.LOGICAL_AND, 62),
    _reader(LogicalOr(), BuiltinOperator.LOGICAL_OR, 60),
    _reader(LogicalNot(), BuiltinOperator.LOGICAL_NOT, 63, inputs=1),
)
