"""Read TFLite's CUMSUM."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.common.tflite_schema import BuiltinOperator, Options
from microtir.operators.cumulation.definition import Cumsum


@dataclass(frozen=True, slots=True)
class CumsumOptions(Options):
    """Options of CUMSUM."""

    exclusive: bool = False
    reverse: bool = False


def cumsum(operands: Operands) -> Converted:
    """Read CUMSUM: data, axis."""
    data, options = operands.input(0), operands.table(CumsumOptions)
    axis = operands.axis(operands.integer(1, "the axis"), len(data.shape))
    return Converted(Cumsum(axis, options.exclusive, options.reverse), (data,))


READERS = (TfliteReader(Cumsum, BuiltinOperator.CUMSUM, cumsum, CumsumOptions, (2, 2)),)
