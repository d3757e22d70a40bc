"""Compute on integers of types that the graph only moves: in wider ones, and back.

What an operator of the graph takes of int8 and int16 are quantised activations.  Integers of ONNX
are counts, whatever their width, and wrap around as numpy's do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from microtir.dtype import DType
from microtir.errors import ExportProblem
from microtir.graph.ir import Tensor
from microtir.graph.operator import Operator
from microtir.operators.common.onnx_operands import OnnxNode
from microtir.operators.conversion.definition import CastTo

_WIDER: Mapping[DType, DType] = MappingProxyType(
    {
        DType.INT8: DType.INT32, DType.UINT8: DType.INT32, DType.INT16: DType.INT32,
        DType.UINT16: DType.INT32, DType.UINT32: DType.INT64,
    }
)  # fmt: skip
"""All their values, and the low bits of their sums and products, are in the wider type."""


# Floats of other widths are computed as float32.
ONNX_TYPES: Mapping[int, DType] = MappingProxyType(
    {
        1: DType.FLOAT32, 2: DType.UINT8, 3: DType.INT8, 4: DType.UINT16, 5: DType.INT16,
        6: DType.INT32, 7: DType.INT64, 9: DType.BOOL, 10: DType.FLOAT32, 11: DType.FLOAT32,
        12: DType.UINT32,
    }
)  # fmt: skip


def onnx_type(node: OnnxNode, number: int) -> DType:
    """Return the type that a number in the file stands for."""
    if number not in ONNX_TYPES:
        raise node.unsupported(
            f"it makes numbers of type {number}",
            ", ".join(dict.fromkeys(dtype.value for dtype in ONNX_TYPES.values())),
            "export the model in float32",
            ExportProblem.OTHER_FLOATS,
        )
    return ONNX_TYPES[number]


def cast(node: OnnxNode, x: Tensor, dtype: DType) -> Tensor:
    """Return a tensor in another type; integers keep their low bits."""
    return x if x.dtype is dtype else node.emit(CastTo(), x, dtype=dtype)


def widened(node: OnnxNode, x: Tensor) -> Tensor:
    """Return a tensor in a type that the graph computes counts in."""
    if x.type.quantization is not None:
        return x
    return cast(node, x, _WIDER.get(x.dtype, x.dtype))


def emit_wide(node: OnnxNode, op: Operator, *inputs: Tensor, dtype: DType | None = None) -> Tensor:
    """Emit an operator on operands of any type.

    Args:
        node: which is read.
        op: of the graph.
        inputs: of one type.
        dtype: of the result; by default that of the inputs.
    """
    found = node.emit(op, *(widened(node, x) for x in inputs), dtype=dtype)
    if dtype is not None or inputs[0].type.quantization is not None:
        return found
    return cast(node, found, inputs[0].dtype)


def plain_wide(op: Operator) -> Callable[[OnnxNode], Tensor]:
    """Return what reads an operator whose inputs are those of one operator of the graph."""
    return lambda node: emit_wide(node, op, *node.present)
