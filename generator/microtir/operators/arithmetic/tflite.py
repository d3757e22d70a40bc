"""Read TFLite's operators of two inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from microtir.dtype import DType
from microtir.operators.arithmetic.definition import BinaryArithmetic, Mul
from microtir.operators.common.tflite_operands import Converted, Operands
from microtir.operators.common.tflite_schema import Options, TfliteActivation


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


def arithmetic(op: type[BinaryArithmetic]) -> Callable[[Operands], Converted]:
    """Return what reads ADD, SUB or MUL, which have an activation."""

    def read(operands: Operands) -> Converted:
        activation = operands.activation(operands.table(BinaryOptions).activation)
        if op is Mul:
            is_of_litert = operands.input(0).dtype is DType.UINT8
            return Converted(Mul(activation, float32_ratio=is_of_litert), operands.present)
        return Converted(op(activation), operands.present)

    return read
