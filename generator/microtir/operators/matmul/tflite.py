"""Read TFLite's products of matrices."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.graph.ir import Node
from microtir.operators.common import tflite_written as written
from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.common.tflite_schema import BuiltinOperator, Options
from microtir.operators.matmul.definition import BatchMatmul


@dataclass(frozen=True, slots=True)
class BatchMatMulOptions(Options):
    """Options of BATCH_MATMUL; the last one is of hybrid forms only."""

    adj_x: bool = False
    adj_y: bool = False
    asymmetric_quantize_inputs: bool = False


def batch_matmul(operands: Operands) -> Converted:
    """Read BATCH_MATMUL: two inputs, constant or not."""
    options = operands.table(BatchMatMulOptions)
    return Converted(BatchMatmul(options.adj_x, options.adj_y), operands.present)


def write_batch_matmul(node: Node) -> written.Written:
    """Write BATCH_MATMUL."""
    op = node.attributes(BatchMatmul)
    return written.Written(node.inputs, BatchMatMulOptions(op.adj_x, op.adj_y))


READERS = (
    TfliteReader(
        BatchMatmul,
        BuiltinOperator.BATCH_MATMUL,
        batch_matmul,
        BatchMatMulOptions,
        (2, 2),
        write=write_batch_matmul,
    ),
)
