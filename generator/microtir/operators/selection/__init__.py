"""Operators that pick elements, or name their places, by conditions."""

from microtir.dtype import DType
from microtir.operators.common import tflite_written
from microtir.operators.common.broadcast import ROWS
from microtir.operators.common.formula import Formula, whole
from microtir.operators.common.quantization import UNUSED
from microtir.operators.common.tflite_operands import TfliteReader, without_attributes
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.operators.common.types import ALL_TYPES, TypeRule, TypeSignature, converting
from microtir.operators.definition import Definition, Trait
from microtir.operators.elementwise import row
from microtir.operators.record import OperatorRecord
from microtir.operators.selection import definition as selection
from microtir.operators.selection import formula, meaning, tflite

_SELECTED = TypeRule(tuple(TypeSignature((DType.BOOL, dtype, dtype), dtype) for dtype in ALL_TYPES))
_CONDITIONS = (DType.BOOL, DType.FLOAT32, DType.INT8, DType.UINT8, DType.INT32, DType.INT64)

RECORDS = (
    row(selection.Select, meaning.select, Formula(formula.select, ROWS), _SELECTED,
        inputs=3, shapes=selection.select_shape, traits=(Trait.STORED,),
        limits="stored values are picked, whatever their scales",
        tflite=(
            TfliteReader(selection.Select, BuiltinOperator.SELECT_V2,
                         without_attributes(selection.Select()), inputs=(3, 3),
                         write=tflite.write_select_v2),
            TfliteReader(selection.Select, BuiltinOperator.SELECT, tflite.select,
                         inputs=(3, 3), write=tflite_written.as_it_is),
        )),
    OperatorRecord(
        Definition(
            selection.Where, converting(*((dtype, DType.INT64) for dtype in _CONDITIONS)), UNUSED,
            selection.where_shape, limits="constant condition",
        ),
        meaning.where, Formula(formula.where, whole),
        (TfliteReader(selection.Where, BuiltinOperator.WHERE, tflite.where,
                      write=tflite_written.as_it_is),),
    ),
)  # fmt: skip
