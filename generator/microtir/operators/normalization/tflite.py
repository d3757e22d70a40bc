"""Read TFLite's L2_NORMALIZATION."""

from __future__ import annotations

from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.common.tflite_schema import BuiltinOperator, FusedOptions
from microtir.operators.normalization.definition import L2Normalize


def l2_normalization(operands: Operands) -> Converted:
    """Read L2_NORMALIZATION."""
    operands.no_activation(operands.table(FusedOptions).activation)
    return Converted(L2Normalize(), (operands.input(0),))


READERS = (
    TfliteReader(L2Normalize, BuiltinOperator.L2_NORMALIZATION, l2_normalization, FusedOptions),
)
