"""Read TFLite's operators that compute shapes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from microtir.graph.ir import Node
from microtir.operators.common import tflite_written as written
from microtir.operators.common.tflite_operands import (
    Converted,
    Operands,
    TfliteReader,
    without_attributes,
)
from microtir.operators.common.tflite_schema import BuiltinOperator, Options, TfliteType
from microtir.operators.shapes.definition import BroadcastArgs, Range, RankOf, ShapeOf


@dataclass(frozen=True, slots=True)
class ShapeOptions(Options):
    """Options of SHAPE; the type of the output says the same."""

    out_type: TfliteType = TfliteType.INT32


def range_(operands: Operands) -> Converted:
    """Read RANGE: start, limit, delta, of which the last step may reach over the limit."""
    names = ("the start", "the limit", "the delta")
    start, limit, delta = (operands.number(i, name) for i, name in enumerate(names))
    what = f"numbers from {start} to {limit} by {delta}"
    if not all(map(math.isfinite, (start, limit, delta))) or (limit - start) * delta <= 0:
        raise operands.malformed(what, "at least one number, finite ones")
    if operands.input(0).dtype.is_float:
        # In float32, as LiteRT counts them.
        first, last, step = map(np.float32, (start, limit, delta))
        steps = math.ceil(abs((last - first) / step))
    else:
        steps = -(-abs(int(limit) - int(start)) // abs(int(delta)))
    return Converted(Range(steps), (operands.input(0), operands.input(2)))


def write_shape(node: Node) -> written.Written:
    """Write SHAPE."""
    return written.Written(node.inputs, ShapeOptions(written.type_of(node.output)))


_Code = BuiltinOperator
READERS = (
    TfliteReader(
        ShapeOf, _Code.SHAPE, without_attributes(ShapeOf()), ShapeOptions, write=write_shape
    ),
    TfliteReader(RankOf, _Code.RANK, without_attributes(RankOf()), write=written.as_it_is),
    TfliteReader(
        BroadcastArgs,
        _Code.BROADCAST_ARGS,
        without_attributes(BroadcastArgs()),
        inputs=(2, 2),
        write=written.as_it_is,
    ),
    TfliteReader(Range, _Code.RANGE, range_, inputs=(3, 3)),
)
