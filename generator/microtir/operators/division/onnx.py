"""Read ONNX's divisions."""

from __future__ import annotations

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.operators.arithmetic.definition import Mul, Sub
from microtir.operators.common.onnx_operands import OnnxNode, OnnxReader
from microtir.operators.common.onnx_types import emit_wide, plain_wide
from microtir.operators.conditions.definition import Equal, Less
from microtir.operators.division.definition import Div, FloorMod
from microtir.operators.selection.definition import Select
from microtir.operators.unary.definition import Abs, Neg


def modulo(node: OnnxNode) -> Tensor:
    """Read Mod: the remainder has the sign of the divisor, with fmod that of the dividend."""
    a, b = node.input(0), node.input(1)
    if a.dtype is DType.UINT64:
        return _unsigned_remainder(node, a, b)
    if not node.integer("fmod", 0):
        return emit_wide(node, FloorMod(), a, b)
    if a.dtype.is_float:
        return _float_remainder(node, a, b)
    whole = emit_wide(node, Mul(), emit_wide(node, Div(), a, b), b)
    return emit_wide(node, Sub(), a, whole)


def _unsigned_remainder(node: OnnxNode, a: Tensor, b: Tensor) -> Tensor:
    """Return what a whole quotient leaves; of a divisor of 0 nothing, as of other integers."""
    whole = emit_wide(node, Mul(), node.emit(Div(), a, b), b)
    zero = node.scalar_like(0, b)
    is_zero = emit_wide(node, Equal(), b, zero, dtype=DType.BOOL)
    return node.emit(Select(), is_zero, zero, emit_wide(node, Sub(), a, whole), dtype=DType.UINT64)


def _float_remainder(node: OnnxNode, a: Tensor, b: Tensor) -> Tensor:
    """Return C's fmod: the remainder of the sizes, with the sign of the dividend."""
    size = node.emit(FloorMod(), node.emit(Abs(), a), node.emit(Abs(), b))
    is_negative = node.emit(Less(), a, node.scalar_like(0.0, a), dtype=DType.BOOL)
    return node.emit(Select(), is_negative, node.emit(Neg(), size), size, dtype=a.dtype)


def reciprocal(node: OnnxNode) -> Tensor:
    """Read Reciprocal."""
    x = node.input(0)
    return node.emit(Div(), node.scalar_like(1.0, x), x)


ONNX_READERS = (
    OnnxReader("Div", plain_wide(Div()), (2, 2)),
    OnnxReader("Mod", modulo, (2, 2), ("fmod",)),
    OnnxReader("Reciprocal", reciprocal),
)
