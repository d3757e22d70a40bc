"""Read TFLite's products of matrices."""

from __future__ import annotations

from dataclasses import dataclass

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


READERS = (
    TfliteReader(
        BatchMatmul, BuiltinOperator.BATCH_MATMUL, batch_matmul, BatchMatMulOptions, (2, 2)
    ),
)
