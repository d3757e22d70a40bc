"""The support table as rows of text, for the command line and the docs."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.frontend.support import READABLE
from microtir.operators import OPERATORS, OperatorRecord
from microtir.operators.common.onnx_operands import MANY, OnnxReader
from microtir.operators.common.tflite_operands import TfliteReader
from microtir.operators.onnx_readers import ONNX_READERS


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """One operator of a file format, with what is supported of it in words."""

    format: str  # "TFLite"
    name: str  # the format's name
    operator: str  # of the graph
    types: str
    quantization: str
    limits: str


@dataclass(frozen=True, slots=True)
class OnnxRow:
    """One operator of ONNX, with the inputs and attributes that are read."""

    domain: str
    name: str
    inputs: str
    attributes: tuple[str, ...]


def onnx_rows() -> tuple[OnnxRow, ...]:
    """Return one row per operator of ONNX, in the order of the families."""
    return tuple(
        OnnxRow(reader.domain or "ai.onnx", reader.name, _inputs(reader), reader.attributes)
        for reader in ONNX_READERS
    )


def _inputs(reader: OnnxReader) -> str:
    low, high = reader.inputs
    if low == high:
        return str(low)
    return f"{low} or more" if high == MANY else f"{low} to {high}"


def _scales(record: OperatorRecord, reader: TfliteReader) -> str:
    words = record.definition.quantization.words
    return words if reader.moved is None else f"{words}; {reader.moved.words}"


def operator_rows() -> tuple[OperatorRow, ...]:
    """Return one row per operator that a model file may hold, in the order of the docs."""
    return tuple(
        OperatorRow(
            format="TFLite",
            name=reader.code if isinstance(reader.code, str) else reader.code.name,
            operator=record.name,
            types=record.definition.types.restricted(READABLE).words,
            quantization=_scales(record, reader),
            limits=record.definition.limits,
        )
        for record in OPERATORS
        for reader in record.tflite
    )
