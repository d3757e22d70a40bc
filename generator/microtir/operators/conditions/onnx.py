"""Read ONNX's comparisons and logic."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.graph.operator import Operator
from microtir.operators import conditions
from microtir.operators.common.onnx_operands import OnnxNode, OnnxReader
from microtir.operators.common.onnx_types import emit_wide
from microtir.operators.conditions.definition import Equal, Less, LogicalOr, NotEqual


def _true_or_false(op: Operator) -> Callable[[OnnxNode], Tensor]:
    return lambda node: emit_wide(node, op, *node.present, dtype=DType.BOOL)


def is_nan(node: OnnxNode) -> Tensor:
    """Read IsNaN: what differs from itself."""
    x = node.input(0)
    return node.emit(NotEqual(), x, x, dtype=DType.BOOL)


def is_infinite(node: OnnxNode) -> Tensor:
    """Read IsInf; attributes leave one of the infinities out."""
    x, signs = node.input(0), []
    for name, value in (("detect_negative", -np.inf), ("detect_positive", np.inf)):
        if node.integer(name, 1):
            signs.append(node.emit(Equal(), x, node.scalar_like(value, x), dtype=DType.BOOL))
    if not signs:
        return node.emit(Less(), x, node.scalar_like(-np.inf, x), dtype=DType.BOOL)
    return signs[0] if len(signs) == 1 else node.emit(LogicalOr(), *signs)


ONNX_READERS = (
    *(
        OnnxReader(record.onnx, _true_or_false(record.op()), record.definition.inputs)
        for record in conditions.RECORDS
        if record.onnx
    ),
    OnnxReader("Xor", _true_or_false(NotEqual()), (2, 2)),
    OnnxReader("IsNaN", is_nan),
    OnnxReader("IsInf", is_infinite, attributes=("detect_negative", "detect_positive")),
)
