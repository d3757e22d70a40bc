"""Read TFLite's conversions."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.operators.common.tflite_operands import TfliteReader, without_attributes
from microtir.operators.common.tflite_schema import BuiltinOperator, Options, TfliteType
from microtir.operators.conversion.definition import CastTo, Dequantize, Quantize


@dataclass(frozen=True, slots=True)
class CastOptions(Options):
    """Options of CAST; readers take the types from the tensors."""

    in_data_type: TfliteType = TfliteType.FLOAT32
    out_data_type: TfliteType = TfliteType.FLOAT32


READERS = (
    TfliteReader(Quantize, BuiltinOperator.QUANTIZE, without_attributes(Quantize())),
    TfliteReader(Dequantize, BuiltinOperator.DEQUANTIZE, without_attributes(Dequantize())),
    TfliteReader(CastTo, BuiltinOperator.CAST, without_attributes(CastTo()), CastOptions),
)
