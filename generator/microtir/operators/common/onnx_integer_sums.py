"""Emit sums of products of stored integers, exactly, by the float operators of the graph.

A float32 holds the sum of few such products without rounding.  So a long sum is cut into parts,
each of which becomes int32 before all are added.
"""

from __future__ import annotations

from collections.abc import Callable

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.operators.common import onnx_arithmetic, onnx_parts, onnx_types
from microtir.operators.common.onnx_operands import OnnxNode

EXACT_PRODUCTS = 256
"""Most products of signed 9-bit integers that a float32 adds up without rounding."""


def centred(node: OnnxNode, x: Tensor, zero_point: Tensor | None, axis: int = 0) -> Tensor:
    """Emit stored integers minus their zero point, or that of each index of an axis, as floats."""
    value = onnx_types.cast(node, x, DType.FLOAT32)
    if zero_point is None:
        return value
    if zero_point.type.elements > 1 and len(zero_point.shape) == 1:
        shape = [1] * len(x.shape)
        shape[node.axis(axis, len(x.shape))] = zero_point.type.elements
        zero_point = onnx_parts.reshaped(node, zero_point, *shape)
    return onnx_arithmetic.sub(node, value, onnx_types.cast(node, zero_point, DType.FLOAT32))


def exact_sum(
    node: OnnxNode, terms: int, at_once: int, part: Callable[[int, int], Tensor]
) -> Tensor:
    """Emit sums of products of integers as int32.

    Args:
        node: of the file.
        terms: of each sum.
        at_once: how many of them a float32 adds up without rounding.
        part: emits the sums of so many terms from one on, as floats.
    """
    total: Tensor | None = None
    for first in range(0, terms, at_once):
        sums = onnx_types.cast(node, part(first, min(at_once, terms - first)), DType.INT32)
        total = sums if total is None else onnx_arithmetic.add(node, total, sums)
    assert total is not None, "an axis has an extent above 0"
    return total
