"""The support table as rows of text, for the command line and the docs."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.frontend.support import OPERATOR_SUPPORT
from microtir.frontend.tflite_operators import READERS


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
    """One row per operator that a model file may hold, in the order of the docs."""
    rows = []
    for code, reader in READERS.items():
        support = OPERATOR_SUPPORT[reader.op]
        rows.append(
            OperatorRow(
                format="TFLite",
                name=code.name,
                operator=reader.op.name,
                types=support.types,
                quantization=support.quantization.value,
                limits=support.limits,
            )
        )
    return tuple(rows)
