"""Read TFLite's L2_NORMALIZATION."""

from __future__ import annotations

from microtir.graph.ir import Node
from microtir.operators.common import tflite_written as written
from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.common.tflite_schema import BuiltinOperator, FusedOptions
from microtir.operators.normalization.definition import L2Normalize


def l2_normalization(operands: Operands) -> Converted:
    """Read L2_NORMALIZATION."""
    operands.no_activation(operands.table(FusedOptions).activation)
    return Converted(L2Normalize(), (operands.input(0),))


def write_l2_normalization(node: Node) -> written.Written:
    """Write L2_NORMALIZATION."""
    return written.Written(node.inputs, FusedOptions())


READERS = (
    TfliteReader(
        L2Normalize,
        BuiltinOperator.L2_NORMALIZATION,
        l2_normalization,
        FusedOptions,
        write=write_l2_normalization,
    ),
)
