"""Read TFLite's conversions."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.graph.ir import Node
from microtir.operators.common import tflite_written as written
from microtir.operators.common.tflite_operands import TfliteReader, without_attributes
from microtir.operators.common.tflite_schema import BuiltinOperator, Options, TfliteType
from microtir.operators.conversion.definition import CastTo, Dequantize, Quantize


@dataclass(frozen=True, slots=True)
class CastOptions(Options):
    """Options of CAST; readers take the types from the tensors."""

    in_data_type: TfliteType = TfliteType.FLOAT32
    out_data_type: TfliteType = TfliteType.FLOAT32


def write_cast(node: Node) -> written.Written:
    """Write CAST."""
    types = (written.type_of(tensor) for tensor in (node.inputs[0], node.output))
    return written.Written(node.inputs, CastOptions(*types))


READERS = (
    TfliteReader(
        Quantize, BuiltinOperator.QUANTIZE, without_attributes(Quantize()), write=written.as_it_is
    ),
    TfliteReader(
        Dequantize,
        BuiltinOperator.DEQUANTIZE,
        without_attributes(Dequantize()),
        write=written.as_it_is,
    ),
    TfliteReader(
        CastTo, BuiltinOperator.CAST, without_attributes(CastTo()), CastOptions, write=write_cast
    ),
)
