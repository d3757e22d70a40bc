"""Read TFLite's operators of two inputs."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.dtype import DType
from microtir.graph.operator import Operator
from microtir.operators.arithmetic.definition import (
    Add,
    AddN,
    Atan2,
    BinaryArithmetic,
    Maximum,
    Minimum,
    Mul,
    Pow,
    SquaredDifference,
    Sub,
)
from microtir.operators.common.tflite_operands import (
    MANY,
    Converted,
    Operands,
    TfliteReader,
    without_attributes,
)
from microtir.operators.common.tflite_schema import (
    BuiltinOperator,
    Options,
    TfliteActivation,
)


@dataclass(frozen=True, slots=True)
class BinaryOptions(Options):
    """Options that ADD, SUB and MUL begin with."""

    activation: TfliteActivation = TfliteActivation.NONE


@dataclass(frozen=True, slots=True)
class AddOptions(BinaryOptions):
    """Options of ADD."""

    pot_scale_int16: bool = True


@dataclass(frozen=True, slots=True)
class SubOptions(BinaryOptions):
    """Options of SUB."""

    pot_scale_int16: bool = True


@dataclass(frozen=True, slots=True)
class MulOptions(BinaryOptions):
    """Options of MUL."""


def _arithmetic(
    op: type[BinaryArithmetic], code: BuiltinOperator, options: type[BinaryOptions]
) -> TfliteReader:
    def read(operands: Operands) -> Converted:
        activation = operands.activation(operands.table(options).activation)
        if op is Mul:
            is_of_litert = operands.input(0).dtype is DType.UINT8
            return Converted(Mul(activation, float32_ratio=is_of_litert), operands.present)
        return Converted(op(activation), operands.present)

    return TfliteReader(op, code, read, options, (2, 2))


def _reader(op: Operator, code: BuiltinOperator, most: int = 2) -> TfliteReader:
    """Return the reader of an operator without attributes."""
    return TfliteReader(type(op), code, without_attributes(op), inputs=(2, most))


READERS = (
    _arithmetic(Add, BuiltinOperator.ADD, AddOptions),
    _arithmetic(Sub, BuiltinOperator.SUB, SubOptions),
    _arithmetic(Mul, BuiltinOperator.MUL, MulOptions),
    _reader(SquaredDifference(), BuiltinOperator.SQUARED_DIFFERENCE),
    _reader(AddN(), BuiltinOperator.ADD_N, MANY),
    _reader(Minimum(), BuiltinOperator.MINIMUM),
    _reader(Maximum(), BuiltinOperator.MAXIMUM),
    _reader(Pow(), BuiltinOperator.POW),
    _reader(Atan2(), BuiltinOperator.ATAN2),
)
