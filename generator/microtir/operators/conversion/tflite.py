"""Read TFLite's conversions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from microtir.operators.common.tflite_operands import (
    TfliteReader,
    without_attributes,
)
from microtir.operators.common.tflite_schema import (
    BuiltinOperator,
    Options,
    TfliteType,
    options_without_fields,
)
from microtir.operators.conversion.definition import CastTo, Dequantize, Quantize

QuantizeOptions = options_without_fields("QuantizeOptions", 89)
DequantizeOptions = options_without_fields("DequantizeOptions", 38)


@dataclass(frozen=True, slots=True)
class CastOptions(Options):
    """Options of CAST; readers take the types from the tensors."""

    union_type: ClassVar[int] = 37
    in_data_type: TfliteType = TfliteType.FLOAT32
    out_data_type: TfliteType = TfliteType.FLOAT32


READERS = (
    TfliteReader(
        Quantize, BuiltinOperator.QUANTIZE, without_attributes(Quantize()), QuantizeOptions
    ),
    TfliteReader(
        Dequantize, BuiltinOperator.DEQUANTIZE, without_attributes(Dequantize()), DequantizeOptions
    ),
    TfliteReader(CastTo, BuiltinOperator.CAST, without_attributes(CastTo()), CastOptions),
)
