"""Read TFLite's SOFTMAX and LOG_SOFTMAX."""

from __future__ import annotations

import math
from dataclasses import dataclass

from microtir.dtype import DType
from microtir.graph.ir import Node, Quantization
from microtir.operators.common import tflite_operands
from microtir.operators.common import tflite_written as written
from microtir.operators.common.tflite_schema import BuiltinOperator, Options
from microtir.operators.common.unlike_scales import FixedResult
from microtir.operators.softmax.definition import SOFTMAX_OF_INT16, LogSoftmax, Softmax


@dataclass(frozen=True, slots=True)
class SoftmaxOptions(Options):
    beta: float = 1.0


def softmax(operands: tflite_operands.Operands) -> tflite_operands.Converted:
    """Read SOFTMAX."""
    beta = operands.table(SoftmaxOptions).beta
    if not (math.isfinite(beta) and beta > 0.0):
        raise operands.malformed(f"beta is {beta}", "finite and above 0")
    return tflite_operands.Converted(Softmax(beta), (operands.input(0),))


def write_softmax(node: Node) -> written.Written:
    """Write SOFTMAX."""
    return written.Written(node.inputs, SoftmaxOptions(node.attributes(Softmax).beta))


READERS = (
    tflite_operands.TfliteReader(
        Softmax,
        BuiltinOperator.SOFTMAX,
        softmax,
        SoftmaxOptions,
        write=write_softmax,
        fixed=(
            FixedResult(DType.UINT8, DType.UINT8, Quantization((1 / 256,), (0,))),
            FixedResult(DType.UINT8, DType.INT16, SOFTMAX_OF_INT16),
            FixedResult(DType.INT8, DType.INT16, SOFTMAX_OF_INT16, refused_by_micro=True),
        ),
    ),
    tflite_operands.TfliteReader(
        LogSoftmax,
        BuiltinOperator.LOG_SOFTMAX,
        tflite_operands.without_attributes(LogSoftmax()),
        write=written.as_it_is,
    ),
)
