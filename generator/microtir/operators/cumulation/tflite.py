"""Read TFLite's CUMSUM."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.graph.ir import Node
from microtir.operators.common import tflite_written as written
from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.common.tflite_schema import BuiltinOperator, Options
from microtir.operators.cumulation.definition import Cumsum


@dataclass(frozen=True, slots=True)
class CumsumOptions(Options):
    exclusive: bool = False
    reverse: bool = False


def cumsum(operands: Operands) -> Converted:
    """Read CUMSUM: data, axis."""
    data, options = operands.input(0), operands.table(CumsumOptions)
    axis = operands.axis(operands.integer(1, "the axis"), len(data.shape))
    return Converted(Cumsum(axis, options.exclusive, options.reverse), (data,))


def write_cumsum(node: Node) -> written.Written:
    """Write CUMSUM."""
    op = node.attributes(Cumsum)
    axis = written.number(node, "axis", op.axis)
    return written.Written((*node.inputs, axis), CumsumOptions(op.exclusive, op.reverse))


READERS = (
    TfliteReader(Cumsum, BuiltinOperator.CUMSUM, cumsum, CumsumOptions, (2, 2), write=write_cumsum),
)
