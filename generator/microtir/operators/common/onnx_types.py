"""Compute on integers of types that the graph only moves: in wider ones, and back.

What an operator of the graph takes of int8 and int16 are quantised activations.  Integers of ONNX
are counts, whatever their width, and wrap around as numpy's do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from microtir.dtype import DType
from microtir.errors import ExportProblem
from microtir.graph.ir import Tensor
from microtir.graph.operator import Operator
from microtir.operators.arithmetic.definition import Add, Maximum, Minimum, Mul, Sub
from microtir.operators.bits.definition import BitwiseAnd, BitwiseOr, BitwiseXor
from microtir.operators.common.onnx_operands import OnnxNode
from microtir.operators.conditions.definition import (
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    NotEqual,
)
from microtir.operators.conversion.definition import CastTo

_WIDER: Mapping[DType, DType] = MappingProxyType(
    {
        DType.INT8: DType.INT32, DType.UINT8: DType.INT32, DType.INT16: DType.INT32,
        DType.UINT16: DType.INT32, DType.UINT32: DType.INT64,
    }
)  # fmt: skip
"""Wider types that hold all values of a type, and the low bits of its sums and products."""


# Floats of other widths are computed as float32.
ONNX_TYPES: Mapping[int, DType] = MappingProxyType(
    {
        1: DType.FLOAT32, 2: DType.UINT8, 3: DType.INT8, 4: DType.UINT16, 5: DType.INT16,
        6: DType.INT32, 7: DType.INT64, 9: DType.BOOL, 10: DType.FLOAT32, 11: DType.FLOAT32,
        12: DType.UINT32, 13: DType.UINT64,
    }
)  # fmt: skip


def onnx_type(node: OnnxNode, number: int) -> DType:
    """Return the type that a number in the file stands for."""
    if number not in ONNX_TYPES:
        raise node.unsupported(
            f"it generates numbers of type {number}",
            ", ".join(dict.fromkeys(dtype.value for dtype in ONNX_TYPES.values())),
            "export the model in float32",
            ExportProblem.OTHER_FLOATS,
        )
    return ONNX_TYPES[number]


def cast(node: OnnxNode, x: Tensor, dtype: DType) -> Tensor:
    """Return a tensor in another type; integers keep their low bits."""
    return x if x.dtype is dtype else node.emit(CastTo(), x, dtype=dtype)


def widened(node: OnnxNode, x: Tensor) -> Tensor:
    """Return a tensor in a type that the graph computes counts in.

    No type holds all of uint64: see `emit_wide`.
    """
    return cast(node, x, _WIDER.get(x.dtype, x.dtype))


def emit_wide(node: OnnxNode, op: Operator, *inputs: Tensor, dtype: DType | None = None) -> Tensor:
    """Emit an operator on operands of any type.

    Args:
        node: which is read.
        op: of the graph.
        inputs: of one type.
        dtype: of the result; by default that of the inputs.
    """
    if inputs[0].dtype is DType.UINT64:
        return _emit_unsigned(node, op, inputs, dtype)
    result = node.emit(op, *(widened(node, x) for x in inputs), dtype=dtype)
    return result if dtype is not None else cast(node, result, inputs[0].dtype)


_OF_LOW_BITS = (Add, Sub, Mul, BitwiseAnd, BitwiseOr, BitwiseXor, Equal, NotEqual)
_OF_ORDER = (Minimum, Maximum, Less, LessEqual, Greater, GreaterEqual)


def _emit_unsigned(
    node: OnnxNode, op: Operator, inputs: Sequence[Tensor], dtype: DType | None
) -> Tensor:
    """Emit an operator on uint64: on their bits as int64, or these in the order of the numbers."""
    if isinstance(op, _OF_LOW_BITS):
        to, back = low_bits, from_low_bits
    elif isinstance(op, _OF_ORDER):
        to, back = in_order, from_order
    else:
        return node.emit(op, *inputs, dtype=dtype)
    result = node.emit(op, *(to(node, x) for x in inputs), dtype=dtype)
    return back(node, result) if dtype is None else result


def low_bits(node: OnnxNode, x: Tensor) -> Tensor:
    """Return the bits of uint64 as int64, which sums and products of these have, too."""
    return cast(node, x, DType.INT64)


def from_low_bits(node: OnnxNode, x: Tensor) -> Tensor:
    """Return int64 as the uint64 of the same bits."""
    return cast(node, x, DType.UINT64)


def in_order(node: OnnxNode, x: Tensor) -> Tensor:
    """Return an int64 for each uint64 that is less by 2^63: they are in the same order."""
    return _with_top_bit_turned(node, low_bits(node, x))


def from_order(node: OnnxNode, x: Tensor) -> Tensor:
    """Return the uint64 that `in_order` was given."""
    return from_low_bits(node, _with_top_bit_turned(node, x))


def _with_top_bit_turned(node: OnnxNode, x: Tensor) -> Tensor:
    return node.emit(BitwiseXor(), x, node.constant(np.array(DType.INT64.min, np.int64)))


def plain_wide(op: Operator) -> Callable[[OnnxNode], Tensor]:
    """Return what reads an operator whose inputs are those of one operator of the graph."""
    return lambda node: emit_wide(node, op, *node.present)
