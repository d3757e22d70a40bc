"""Read TFLite's operators that divide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from microtir.dtype import DType
from microtir.graph.operator import Operator
from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.common.tflite_schema import (
    BuiltinOperator,
    Options,
    TfliteActivation,
    options_without_fields,
)
from microtir.operators.division.definition import Div, FloorDiv, FloorMod


@dataclass(frozen=True, slots=True)
class DivOptions(Options):
    """Options of DIV."""

    union_type: ClassVar[int] = 29
    activation: TfliteActivation = TfliteActivation.NONE


FloorDivOptions = options_without_fields("FloorDivOptions", 65)
FloorModOptions = options_without_fields("FloorModOptions", 72)


def _refuse_zero(operands: Operands) -> None:
    """Refuse a constant divisor for which other implementations fail while the model runs."""
    divisor = operands.input(1)
    quant = divisor.type.quantization
    zero = 0 if quant is None or quant.is_per_channel else quant.zero_point
    if divisor.data is not None and not np.all(divisor.data != zero):
        raise operands.unsupported(
            "its constant divisor holds 0", "other numbers", "multiply by a constant instead"
        )


def div(operands: Operands) -> Converted:
    """Read DIV."""
    if not operands.input(1).dtype.is_float:
        _refuse_zero(operands)
    activation = operands.activation(operands.table(DivOptions).activation)
    is_of_litert = operands.input(0).dtype is DType.UINT8
    return Converted(Div(activation, float32_ratio=is_of_litert), operands.present)


def _floor(op: FloorDiv | FloorMod) -> Callable[[Operands], Converted]:
    def read(operands: Operands) -> Converted:
        if isinstance(op, FloorDiv) or not operands.input(1).dtype.is_float:
            _refuse_zero(operands)
        return Converted(op, operands.present)

    return read


def _reader(
    op: type[Operator],
    code: BuiltinOperator,
    read: Callable[[Operands], Converted],
    options: type[Options],
) -> TfliteReader:
    return TfliteReader(op, code, read, options, (2, 2))


READERS = (
    _reader(Div, BuiltinOperator.DIV, div, DivOptions),
    _reader(FloorDiv, BuiltinOperator.FLOOR_DIV, _floor(FloorDiv()), FloorDivOptions),
    _reader(FloorMod, BuiltinOperator.FLOOR_MOD, _floor(FloorMod()), FloorModOptions),
)
