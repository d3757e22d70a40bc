"""Read TFLite's operators of two inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from microtir.operators.arithmetic.definition import (
    Add,
    BinaryArithmetic,
    Maximum,
    Minimum,
    Mul,
    Sub,
)
from microtir.operators.common.tflite_operands import (
    Converted,
    Operands,
    TfliteReader,
    without_attributes,
)
from microtir.operators.common.tflite_schema import (
    BuiltinOperator,
    Options,
    TfliteActivation,
    options_without_fields,
)


@dataclass(frozen=True, slots=True)
class BinaryOptions(Options):
    """Options that ADD, SUB and MUL begin with."""

    activation: TfliteActivation = TfliteActivation.NONE


@dataclass(frozen=True, slots=True)
class AddOptions(BinaryOptions):
    """Options of ADD."""

    union_type: ClassVar[int] = 11
    pot_scale_int16: bool = True


@dataclass(frozen=True, slots=True)
class SubOptions(BinaryOptions):
    """Options of SUB."""

    union_type: ClassVar[int] = 28
    pot_scale_int16: bool = True


@dataclass(frozen=True, slots=True)
class MulOptions(BinaryOptions):
    """Options of MUL."""

    union_type: ClassVar[int] = 21


MaximumMinimumOptions = options_without_fields("MaximumMinimumOptions", 39)


def _arithmetic(
    op: type[BinaryArithmetic], code: BuiltinOperator, options: type[BinaryOptions]
) -> TfliteReader:
    def read(operands: Operands) -> Converted:
        activation = operands.activation(operands.table(options).activation)
        return Converted(op(activation), operands.present)

    return TfliteReader(op, code, read, options, (2, 2))


def _extremum(op: Minimum | Maximum, code: BuiltinOperator) -> TfliteReader:
    return TfliteReader(type(op), code, without_attributes(op), MaximumMinimumOptions, (2, 2))


READERS = (
    _arithmetic(Add, BuiltinOperator.ADD, AddOptions),
    _arithmetic(Sub, BuiltinOperator.SUB, SubOptions),
    _arithmetic(Mul, BuiltinOperator.MUL, MulOptions),
    _extremum(Minimum(), BuiltinOperator.MINIMUM),
    _extremum(Maximum(), BuiltinOperator.MAXIMUM),
)
