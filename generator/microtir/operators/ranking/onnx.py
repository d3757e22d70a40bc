"""Read ONNX's operators that put values in order, and those whose number of results is known."""

from __future__ import annotations

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Tensor, TensorType
from microtir.operators.common.onnx_arithmetic import sub
from microtir.operators.common.onnx_operands import OnnxNode, OnnxReader
from microtir.operators.common.onnx_parts import from_last, to_last
from microtir.operators.common.onnx_types import cast, from_order, in_order, widened
from microtir.operators.ranking.definition import TopK
from microtir.operators.unary.definition import Neg


def top_k(node: OnnxNode) -> tuple[Tensor, Tensor]:
    """Read TopK: the smallest are the largest of the values turned around."""
    x = node.input(0)
    if node.version < 10:
        count = node.integer("k")
    else:
        count = node.whole_number(1, "how many")
    axis = node.axis(node.integer("axis", -1), len(x.shape))
    is_long = x.dtype is DType.UINT64
    counts = in_order(node, x) if is_long else widened(node, x)
    rows, is_largest = to_last(node, counts, axis), bool(node.integer("largest", 1))
    ranked = rows if is_largest else _turned(node, rows)
    types = (None, TensorType((), DType.INT32))
    values, places = node.emitter.emit(TopK(count), (ranked,), types)
    if not is_largest:
        values = _turned(node, values)
    given = from_order(node, values) if is_long else cast(node, values, x.dtype)
    found = from_last(node, given, axis)
    return found, from_last(node, cast(node, places, DType.INT64), axis)


def _turned(node: OnnxNode, x: Tensor) -> Tensor:
    """Return values in reverse order: -x, or -1 - x of integers, which overflows nowhere."""
    return node.emit(Neg(), x) if x.dtype.is_float else sub(node, -1, x)


def unique(node: OnnxNode) -> tuple[Tensor, ...]:
    """Read Unique of known values: sorted, or in the order of their first occurrences."""
    values = node.known(0, "the values whose number the shape depends on")
    axis = None
    if node.has("axis"):
        axis = node.axis(node.integer("axis"), values.ndim)
    found, first, inverse, counts = np.unique(
        values, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    if not node.integer("sorted", 1):
        order = np.argsort(first)
        rank = np.argsort(order)
        found = found[order] if axis is None else np.take(found, order, axis)
        first, inverse, counts = first[order], rank[inverse.reshape(-1)], counts[order]
    numbers = (first, inverse.reshape(-1), counts)
    return (node.constant(found), *(node.constant(n.astype(np.int64)) for n in numbers))


ONNX_READERS = (
    OnnxReader("TopK", top_k, (1, 2), ("axis", "k", "largest", "sorted"), outputs=2),
    OnnxReader("Unique", unique, attributes=("axis", "sorted"), outputs=4),
)
