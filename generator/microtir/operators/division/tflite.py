"""Read TFLite's operators that divide."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.common import tflite_written as written
from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.common.tflite_schema import BuiltinOperator, FusedOptions
from microtir.operators.division.definition import Div, FloorDiv, FloorMod


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
    activation = operands.activation(operands.table(FusedOptions).activation)
    is_of_litert = operands.input(0).dtype is DType.UINT8
    return Converted(Div(activation, float32_ratio=is_of_litert), operands.present)


def _floor(op: FloorDiv | FloorMod) -> Callable[[Operands], Converted]:
    def read(operands: Operands) -> Converted:
        if isinstance(op, FloorDiv) or not operands.input(1).dtype.is_float:
            _refuse_zero(operands)
        return Converted(op, operands.present)

    return read


def write_div(node: Node) -> written.Written:
    """Write DIV."""
    fused = node.attributes(Div).activation
    return written.Written(node.inputs, FusedOptions(written.activation(fused)))


_Code, _AS_IT_IS = BuiltinOperator, written.as_it_is
READERS = (
    TfliteReader(Div, _Code.DIV, div, FusedOptions, (2, 2), write=write_div),
    TfliteReader(FloorDiv, _Code.FLOOR_DIV, _floor(FloorDiv()), inputs=(2, 2), write=_AS_IT_IS),
    TfliteReader(FloorMod, _Code.FLOOR_MOD, _floor(FloorMod()), inputs=(2, 2), write=_AS_IT_IS),
)
