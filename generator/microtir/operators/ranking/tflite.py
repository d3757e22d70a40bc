"""Read TFLite's operators that put values in order."""

from __future__ import annotations

from microtir.graph.ir import Node
from microtir.operators.common import tflite_written as written
from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.operators.common.unlike_scales import COPIED
from microtir.operators.ranking.definition import TopK


def top_k(operands: Operands) -> Converted:
    """Read TOPK_V2: data, the number of values."""
    return Converted(TopK(operands.integer(1, "the number of values")), (operands.input(0),))


def write_top_k(node: Node) -> written.Written:
    """Write TOPK_V2."""
    count = written.number(node, "count", node.attributes(TopK).count)
    return written.Written((*node.inputs, count))


READERS = (
    TfliteReader(
        TopK,
        BuiltinOperator.TOPK_V2,
        top_k,
        inputs=(2, 2),
        outputs=2,
        moved=COPIED,
        write=write_top_k,
    ),
)
