"""Readers of TFLite's conversions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from microtir.graph.operator import Operator
from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.common.tflite_schema import BuiltinOperator, Options, TensorType
from microtir.operators.conversion.definition import CastTo, Dequantize, Quantize


@dataclass(frozen=True, slots=True)
class QuantizeOptions(Options):
    """Options of QUANTIZE (none)."""

    union_type: ClassVar[int] = 89


@dataclass(frozen=True, slots=True)
class DequantizeOptions(Options):
    """Options of DEQUANTIZE (none)."""

    union_type: ClassVar[int] = 38


@dataclass(frozen=True, slots=True)
class CastOptions(Options):
    """Options of CAST; readers take the types from the tensors."""

    union_type: ClassVar[int] = 37
    in_data_type: TensorType = TensorType.FLOAT32
    out_data_type: TensorType = TensorType.FLOAT32


def _conversion(op: Operator) -> Callable[[Operands], Converted]:
    """Read a conversion: the types of its tensors say all."""
    return lambda operands: Converted(op, (operands.input(0),))


READERS = (
    TfliteReader(Quantize, BuiltinOperator.QUANTIZE, _conversion(Quantize()), QuantizeOptions),
    TfliteReader(
        Dequantize, BuiltinOperator.DEQUANTIZE, _conversion(Dequantize()), DequantizeOptions
    ),
    TfliteReader(CastTo, BuiltinOperator.CAST, _conversion(CastTo()), CastOptions),
)
