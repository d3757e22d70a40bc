"""The support table as rows of text, for the command line and the docs."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.frontend.support import READABLE
from microtir.operators import OPERATORS


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """One operator of a file format, with what is supported of it in words."""

    format: str  # "TFLite"
    name: str  # the format's name
    operator: str  # of the graph
    types: str
    quantization: str
    limits: str


def operator_rows() -> tuple[OperatorRow, ...]:
    """Return one row per operator that a model file may hold, in the order of the docs."""
    return tuple(
        OperatorRow(
            format="TFLite",
            name=reader.code if isinstance(reader.code, str) else reader.code.name,
            operator=record.name,
            types=record.definition.types.restricted(READABLE).words,
            quantization=record.definition.quantization.words,
            limits=record.definition.limits,
        )
        for record in OPERATORS
        for reader in record.tflite
    )
