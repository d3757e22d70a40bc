"""Read TFLite's reductions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.common.tflite_schema import BuiltinOperator, Options
from microtir.operators.reduction.definition import Mean


@dataclass(frozen=True, slots=True)
class ReducerOptions(Options):
    """Options of MEAN and REDUCE_PROD."""

    union_type: ClassVar[int] = 27
    keep_dims: bool = False


def mean(operands: Operands) -> Converted:
    """Read MEAN: data, axes."""
    data = operands.input(0)
    rank = len(data.shape)
    named = operands.integers(1, "the axes")
    axes = tuple(sorted({operands.axis(axis, rank) for axis in named}))
    return Converted(Mean(axes, operands.table(ReducerOptions).keep_dims), (data,))


READERS = (TfliteReader(Mean, BuiltinOperator.MEAN, mean, ReducerOptions, (2, 2)),)
