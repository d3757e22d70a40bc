"""Read operators of ONNX that become a row of elementwise operators as they are."""

from __future__ import annotations

from collections.abc import Iterable

from microtir.dtype import DType
from microtir.operators.common.onnx_operands import OnnxReader, plain
from microtir.operators.common.onnx_types import plain_wide
from microtir.operators.definition import Trait
from microtir.operators.record import OperatorRecord


def readers_of(records: Iterable[OperatorRecord]) -> tuple[OnnxReader, ...]:
    """Return the readers of rows that name an operator of ONNX, in their order.

    Integers of ONNX are counts: an operator that counts in INT32 takes them in types that hold
    all of them, unless it takes integers as they are stored.
    """
    return tuple(
        OnnxReader(
            record.onnx,
            plain_wide(record.op()) if _counts(record) else plain(record.op()),
            record.definition.inputs,
        )
        for record in records
        if record.onnx
    )


def _counts(record: OperatorRecord) -> bool:
    types = (DType.INT32,) * record.definition.inputs[0], (DType.INT32,)
    return record.definition.types.accepts(*types) and not record.has(Trait.STORED)
