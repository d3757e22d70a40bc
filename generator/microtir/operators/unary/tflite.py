"""Read TFLite's functions of one element that are no activations."""

from __future__ import annotations

from microtir.graph.operator import Operator
from microtir.operators.common.tflite_operands import TfliteReader, without_attributes
from microtir.operators.common.tflite_schema import BuiltinOperator, Options, options_without_fields
from microtir.operators.unary.definition import (
    Abs,
    Ceil,
    Cos,
    Exp,
    Floor,
    Log,
    Neg,
    Round,
    Rsqrt,
    Sign,
    Sin,
    Sqrt,
    Square,
    ZerosLike,
)

_UNION_TYPES = {
    Abs: 78, Neg: 42, Sign: 123, Square: 66, Exp: 33, Cos: 84, ZerosLike: 67,
}  # fmt: skip


def _reader(op: type[Operator], code: BuiltinOperator) -> TfliteReader:
    union_type = _UNION_TYPES.get(op)
    options = Options
    if union_type is not None:
        options = options_without_fields(f"{op.__name__}Options", union_type)
    return TfliteReader(op, code, without_attributes(op()), options)


_Code = BuiltinOperator
READERS = (
    _reader(Abs, _Code.ABS),
    _reader(Neg, _Code.NEG),
    _reader(Sign, _Code.SIGN),
    _reader(Square, _Code.SQUARE),
    _reader(Sqrt, _Code.SQRT),
    _reader(Rsqrt, _Code.RSQRT),
    _reader(Exp, _Code.EXP),
    _reader(Log, _Code.LOG),
    _reader(Sin, _Code.SIN),
    _reader(Cos, _Code.COS),
    _reader(Floor, _Code.FLOOR),
    _reader(Ceil, _Code.CEIL),
    _reader(Round, _Code.ROUND),
    _reader(ZerosLike, _Code.ZEROS_LIKE),
)
