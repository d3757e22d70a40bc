"""Read TFLite's L2_NORMALIZATION."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.common.tflite_schema import BuiltinOperator, Options, TfliteActivation
from microtir.operators.normalization.definition import L2Normalize


@dataclass(frozen=True, slots=True)
class L2NormOptions(Options):
    """Options of L2_NORMALIZATION."""

    union_type: ClassVar[int] = 12
    activation: TfliteActivation = TfliteActivation.NONE


def l2_normalization(operands: Operands) -> Converted:
    """Read L2_NORMALIZATION."""
    operands.no_activation(operands.table(L2NormOptions).activation)
    return Converted(L2Normalize(), (operands.input(0),))


READERS = (
    TfliteReader(L2Normalize, BuiltinOperator.L2_NORMALIZATION, l2_normalization, L2NormOptions),
)
