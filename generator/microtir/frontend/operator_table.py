"""The support table as rows of text, for the command line and the docs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from microtir.frontend.support import READABLE
from microtir.frontend.tflite_decoding import CODE as DECODE
from microtir.frontend.tflite_subgraphs import CONTROL_OPTIONS
from microtir.frontend.tflite_variables import VARIABLE_OPTIONS
from microtir.operators import OPERATORS, OperatorRecord
from microtir.operators.common.onnx_operands import MANY, OnnxReader
from microtir.operators.common.tflite_operands import TfliteReader
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.operators.onnx_readers import ONNX_READERS
from microtir.operators.torch_readers import TORCH_READERS


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """One operator of a file format, with what is supported of it in words."""

    format: str  # "TFLite"
    name: str  # the format's name
    operator: str  # of the graph, or what else becomes of it
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


@dataclass(frozen=True, slots=True)
class TorchRow:
    """One operator of PyTorch, with the arguments that are read."""

    name: str
    arguments: tuple[str, ...]


def torch_rows() -> tuple[TorchRow, ...]:
    """Return one row per operator of PyTorch, in the order of the families.

    What writes in place is read as the operator without "_" is.
    """
    return tuple(TorchRow(reader.name, reader.arguments) for reader in TORCH_READERS)


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
    also = (*((reader.moved,) if reader.moved else ()), *reader.fixed)
    return "; ".join((words, *(one.words for one in also)))


def operator_rows() -> tuple[OperatorRow, ...]:
    """Return one row per operator that a model file may hold, in the order of the docs.

    What becomes no operator of the graph comes last.
    """
    return (*_computing(), *_resolved())


_RESOLVED = (
    (tuple(VARIABLE_OPTIONS), "a state", "float32, int8, int16, int32, bool", "of known shape"),
    (
        tuple(CONTROL_OPTIONS), "the operators of its subgraphs", "bool",
        "a number of iterations that is constant or has a bound",
    ),
    ((DECODE,), "a constant", "float32, int8, int16, int32, int64, bool", "constant operands"),
    (
        (BuiltinOperator.DENSIFY,), "a constant", "float32, float16, integers of 8 bits and more",
        "a sparse constant",
    ),
)  # fmt: skip
"""Operators of a file that are resolved while it is read: what becomes of them, types, limits."""


def _resolved() -> Iterator[OperatorRow]:
    for codes, what, types, limits in _RESOLVED:
        for code in codes:
            name = code if isinstance(code, str) else code.name
            yield OperatorRow("TFLite", name, what, types, "as it is", limits)


def _computing() -> tuple[OperatorRow, ...]:
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
