"""Readers of TFLite's conversions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from microtir.operators.common.tflite_operands import (
    TfliteReader,
    of_one_input,
)
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


READERS = (
    TfliteReader(Quantize, BuiltinOperator.QUANTIZE, of_one_input(Quantize()), QuantizeOptions),
    TfliteReader(
        Dequantize, BuiltinOperator.DEQUANTIZE, of_one_input(Dequantize()), DequantizeOptions
    ),
    TfliteReader(CastTo, BuiltinOperator.CAST, of_one_input(CastTo()), CastOptions),
)
