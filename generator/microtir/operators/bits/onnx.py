"""Read ONNX's operators on bits."""

from __future__ import annotations

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.operators import bits
from microtir.operators.bits.definition import BitCast, BitwiseXor
from microtir.operators.common import onnx_operands, onnx_rows
from microtir.operators.common.onnx_arithmetic import at_most, both, choose, div, less, mul
from microtir.operators.common.onnx_types import cast, emit_wide, onnx_type, widened
from microtir.operators.division.definition import Div
from microtir.operators.indexing.definition import Gather

_MOST_BITS = 64


def invert(node: onnx_operands.OnnxNode) -> Tensor:
    """Read BitwiseNot: of -1, which has all bits, and the input those that differ."""
    x = node.input(0)
    if x.dtype is DType.UINT64:
        return emit_wide(node, BitwiseXor(), x, node.scalar_like(DType.UINT64.max, x))
    ones = node.constant(np.array(-1, widened(node, x).dtype.value))
    return cast(node, node.emit(BitwiseXor(), widened(node, x), ones), x.dtype)


def shift(node: onnx_operands.OnnxNode) -> Tensor:
    """Read BitShift: a product with a power of two, or the whole quotient by one, in int64.

    A negative number is shifted to the right with all its bits inverted.  By fewer bits than none,
    or as many as the type has, only the sign is left, and of a shift to the left nothing.
    """
    x, count = node.input(0), node.input(1)
    way = node.word("direction")
    if way not in ("LEFT", "RIGHT") or not x.dtype.is_int:
        raise node.malformed(f"{x.dtype.value} shifted {way!r}", "integers, LEFT or RIGHT")
    powers = node.constant(np.int64(1) << np.arange(_MOST_BITS, dtype=np.int64))
    places = cast(node, count, DType.INT64)
    power = node.emit(Gather(0), powers, places)
    value = cast(node, x, DType.INT64)  # of uint64 the bits
    zero = node.scalar_like(0, value)
    is_inside = both(
        node, at_most(node, zero, places), less(node, places, node.scalar_like(x.dtype.bits, value))
    )
    if way == "LEFT":
        return cast(node, choose(node, is_inside, mul(node, value, power), zero), x.dtype)
    if x.dtype is DType.UINT64:
        divided = node.emit(Div(), x, cast(node, power, x.dtype))
        return choose(node, is_inside, divided, node.scalar_like(0, x))
    sign = choose(node, less(node, value, zero), node.scalar_like(-1, value), zero)
    size = node.emit(BitwiseXor(), value, sign)
    quotient = choose(node, is_inside, div(node, size, power), zero)
    return cast(node, node.emit(BitwiseXor(), quotient, sign), x.dtype)


def bit_cast(node: onnx_operands.OnnxNode) -> Tensor:
    """Read BitCast between types of one width: all bits stay."""
    x, dtype = node.input(0), onnx_type(node, node.integer("to"))
    if x.dtype.bits != dtype.bits or dtype is DType.BOOL:
        # float64 and float16 are float32 here, and their bits are gone.
        raise node.unsupported(
            f"it takes the bits of {x.dtype.value} as {dtype.value}",
            "integers of one width, float32 and integers of 32 bits",
            "compute it in the application",
        )
    if x.dtype.is_float is dtype.is_float:
        return cast(node, x, dtype)
    if x.dtype.is_float:
        return cast(node, node.emit(BitCast(), x, dtype=DType.INT32), dtype)
    return node.emit(BitCast(), cast(node, x, DType.INT32), dtype=DType.FLOAT32)


ONNX_READERS = (
    *onnx_rows.readers_of(bits.RECORDS),
    onnx_operands.OnnxReader("BitwiseNot", invert),
    onnx_operands.OnnxReader("BitShift", shift, (2, 2), ("direction",)),
    onnx_operands.OnnxReader("BitCast", bit_cast, attributes=("to",)),
)
