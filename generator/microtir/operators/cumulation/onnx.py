"""Read ONNX's sums and products along an axis."""

from __future__ import annotations

from microtir.graph.ir import Tensor
from microtir.operators.common import onnx_arithmetic, onnx_parts
from microtir.operators.common.onnx_operands import OnnxNode, OnnxReader
from microtir.operators.cumulation.definition import Cumsum

_ATTRIBUTES = ("exclusive", "reverse")


def cumsum(node: OnnxNode) -> Tensor:
    """Read CumSum."""
    x = node.input(0)
    axis = node.whole_number(1, "the axis")
    op = Cumsum(
        node.axis(axis, len(x.shape)),
        bool(node.integer("exclusive", 0)),
        bool(node.integer("reverse", 0)),
    )
    return node.emit(op, x)


def cumulated_product(node: OnnxNode) -> Tensor:
    """Read CumProd: each step multiplies with what lies twice as far away as in the one before."""
    x = node.input(0)
    stated = node.whole_number(1, "the axis")
    axis, is_reverse = node.axis(stated, len(x.shape)), bool(node.integer("reverse", 0))
    if node.integer("exclusive", 0):
        x = _moved(node, x, axis, 1, is_reverse=is_reverse)
    distance = 1
    while distance < x.shape[axis]:
        x = onnx_arithmetic.mul(node, x, _moved(node, x, axis, distance, is_reverse=is_reverse))
        distance *= 2
    return x


def _moved(node: OnnxNode, x: Tensor, axis: int, distance: int, *, is_reverse: bool) -> Tensor:
    """Return a tensor moved along an axis, with ones where nothing is moved to."""
    rest = onnx_parts.along(node, x, axis, distance if is_reverse else 0, x.shape[axis] - distance)
    if not rest.type.elements:
        return node.scalar_like(1, x)
    before, after = (0, distance) if is_reverse else (distance, 0)
    return onnx_parts.padded(node, rest, axis, before, after, 1)


ONNX_READERS = (
    OnnxReader("CumSum", cumsum, (2, 2), _ATTRIBUTES),
    OnnxReader("CumProd", cumulated_product, (2, 2), _ATTRIBUTES),
)
