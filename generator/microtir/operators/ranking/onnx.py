"""Read ONNX's operators that put values in order, and those whose number of results is known."""

from __future__ import annotations

from microtir.dtype import DType
from microtir.graph.ir import Tensor, TensorType
from microtir.operators.common import onnx_arithmetic, onnx_parts
from microtir.operators.common.onnx_operands import OnnxNode, OnnxReader
from microtir.operators.common.onnx_types import cast, from_order, in_order, widened
from microtir.operators.ranking.definition import TopK
from microtir.operators.ranking.onnx_unique import computed_unique, known_unique
from microtir.operators.unary.definition import Neg


def top_k(node: OnnxNode) -> tuple[Tensor, Tensor]:
    """Read TopK: the smallest are the largest of the values turned around."""
    x = node.input(0)
    if node.version < 10:
        count = node.integer("k")
    else:
        count = node.whole_number(1, "how many")
    axis = node.axis(node.integer("axis", -1), len(x.shape))
    rows, is_largest = onnx_parts.to_last(node, x, axis), bool(node.integer("largest", 1))
    values, places = _ranked(node, rows, count, is_largest=is_largest)
    results = onnx_parts.from_last(node, values, axis)
    return results, onnx_parts.from_last(node, cast(node, places, DType.INT64), axis)


def _ranked(node: OnnxNode, x: Tensor, count: int, *, is_largest: bool) -> tuple[Tensor, Tensor]:
    """Return the first values by size along the last axis, and their places as int32."""
    is_long = x.dtype is DType.UINT64
    counts = in_order(node, x) if is_long else widened(node, x)
    ranked = counts if is_largest else _turned(node, counts)
    types = (None, TensorType((), DType.INT32))
    values, places = node.emitter.emit(TopK(count), (ranked,), types)
    if not is_largest:
        values = _turned(node, values)
    return from_order(node, values) if is_long else cast(node, values, x.dtype), places


def _turned(node: OnnxNode, x: Tensor) -> Tensor:
    """Return values in reverse order: -x, or -1 - x of integers, which overflows nowhere."""
    return node.emit(Neg(), x) if x.dtype.is_float else onnx_arithmetic.sub(node, -1, x)


def _sorted(node: OnnxNode, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the values of a line from the smallest on, and where they were."""
    return _ranked(node, x, x.shape[-1], is_largest=False)


def unique(node: OnnxNode) -> tuple[Tensor, ...]:
    """Read Unique."""
    is_known = node.input(0).data is not None
    return known_unique(node) if is_known else computed_unique(node, _sorted)


ONNX_READERS = (
    OnnxReader("TopK", top_k, (1, 2), ("axis", "k", "largest", "sorted"), outputs=2),
    OnnxReader("Unique", unique, attributes=("axis", "sorted"), outputs=4),
)
