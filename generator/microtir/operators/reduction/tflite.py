"""Read TFLite's reductions."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.graph.ir import Node
from microtir.operators.common import tflite_written as written
from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.common.tflite_schema import BuiltinOperator, Options, TfliteType
from microtir.operators.reduction.definition import ArgExtremum, Reduction


@dataclass(frozen=True, slots=True)
class ReducerOptions(Options):
    keep_dims: bool = False


@dataclass(frozen=True, slots=True)
class PlaceOptions(Options):
    """Options of ARG_MAX and ARG_MIN; readers take the type from the output."""

    output_type: TfliteType = TfliteType.FLOAT32


def position(op: type[ArgExtremum], code: BuiltinOperator) -> TfliteReader:
    """Return the reader of an operator whose inputs are data and an axis."""

    def read(operands: Operands) -> Converted:
        data = operands.input(0)
        axis = operands.axis(operands.integer(1, "the axis"), len(data.shape))
        return Converted(op(axis), (data,))

    def write(node: Node) -> written.Written:
        axis = written.number(node, "axis", node.attributes(op).axis)
        return written.Written((*node.inputs, axis), PlaceOptions(written.type_of(node.output)))

    return TfliteReader(op, code, read, PlaceOptions, (2, 2), write=write)


def reduction(op: type[Reduction], code: BuiltinOperator) -> TfliteReader:
    """Return the reader of an operator whose inputs are data and axes."""

    def read(operands: Operands) -> Converted:
        data = operands.input(0)
        rank = len(data.shape)
        named = operands.integers(1, "the axes")
        axes = tuple(sorted({operands.axis(axis, rank) for axis in named}))
        return Converted(op(axes, operands.table(ReducerOptions).keep_dims), (data,))

    def write(node: Node) -> written.Written:
        attributes = node.attributes(op)
        axes = written.numbers(node, "axes", attributes.axes)
        return written.Written((*node.inputs, axes), ReducerOptions(attributes.keep_dims))

    return TfliteReader(op, code, read, ReducerOptions, (2, 2), write=write)
