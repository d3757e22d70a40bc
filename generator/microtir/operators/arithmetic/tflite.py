"""Readers of TFLite's operators of two inputs."""

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
from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.common.tflite_schema import Activation, BuiltinOperator, Options


@dataclass(frozen=True, slots=True)
class AddOptions(Options):
    """Options of ADD."""

    union_type: ClassVar[int] = 11
    activation: Activation = Activation.NONE
    pot_scale_int16: bool = True


@dataclass(frozen=True, slots=True)
class SubOptions(Options):
    """Options of SUB."""

    union_type: ClassVar[int] = 28
    activation: Activation = Activation.NONE
    pot_scale_int16: bool = True


@dataclass(frozen=True, slots=True)
class MulOptions(Options):
    """Options of MUL."""

    union_type: ClassVar[int] = 21
    activation: Activation = Activation.NONE


@dataclass(frozen=True, slots=True)
class MaximumMinimumOptions(Options):
    """Options of MAXIMUM and MINIMUM (none)."""

    union_type: ClassVar[int] = 39


def arithmetic(operands: Operands) -> Converted:
    """Read ADD, SUB and MUL."""
    options = operands.options
    assert isinstance(options, AddOptions | SubOptions | MulOptions)
    kinds: dict[BuiltinOperator | str, type[BinaryArithmetic]] = {
        BuiltinOperator.ADD: Add,
        BuiltinOperator.SUB: Sub,
        BuiltinOperator.MUL: Mul,
    }
    op = kinds[operands.code](operands.activation(options.activation))
    return Converted(op, operands.present)


def extremum(operands: Operands) -> Converted:
    """Read MINIMUM and MAXIMUM."""
    op = Minimum() if operands.code is BuiltinOperator.MINIMUM else Maximum()
    return Converted(op, operands.present)


READERS = (
    TfliteReader(Add, BuiltinOperator.ADD, arithmetic, AddOptions, (2, 2)),
    TfliteReader(Sub, BuiltinOperator.SUB, arithmetic, SubOptions, (2, 2)),
    TfliteReader(Mul, BuiltinOperator.MUL, arithmetic, MulOptions, (2, 2)),
    TfliteReader(Minimum, BuiltinOperator.MINIMUM, extremum, MaximumMinimumOptions, (2, 2)),
    TfliteReader(Maximum, BuiltinOperator.MAXIMUM, extremum, MaximumMinimumOptions, (2, 2)),
)
