"""Read TFLite's operators of two inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.arithmetic.definition import BinaryArithmetic, Mul
from microtir.operators.common import tflite_written as written
from microtir.operators.common.tflite_operands import Converted, Operands
from microtir.operators.common.tflite_schema import FusedOptions


@dataclass(frozen=True, slots=True)
class AddOptions(FusedOptions):
    pot_scale_int16: bool = True


@dataclass(frozen=True, slots=True)
class SubOptions(FusedOptions):
    pot_scale_int16: bool = True


def arithmetic(op: type[BinaryArithmetic]) -> Callable[[Operands], Converted]:
    """Return what reads ADD, SUB or MUL, which have an activation."""

    def read(operands: Operands) -> Converted:
        activation = operands.activation(operands.table(FusedOptions).activation)
        if op is Mul:
            is_of_litert = operands.input(0).dtype is DType.UINT8
            return Converted(Mul(activation, float32_ratio=is_of_litert), operands.present)
        return Converted(op(activation), operands.present)

    return read


def write_arithmetic(options: type[FusedOptions]) -> written.Write:
    """Return what writes ADD, SUB or MUL."""

    def write(node: Node) -> written.Written:
        fused = node.attributes(BinaryArithmetic).activation
        return written.Written(node.inputs, options(written.activation(fused)))

    return write
