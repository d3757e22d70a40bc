"""ADD of two activations of one shape, one of which is only shifted.

TFLite widens both operands by 20 bits, rescales them by s1 / 2s and s2 / 2s, where s is the larger
of their scales, and rounds each twice.  For the operand that has the larger scale the factor is
one half, and rounding never happens: it is shifted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from microtir import te
from microtir.graph.ir import Node
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.packing import constant
from microtir.kernels.common.refusals import activations_refusal
from microtir.kernels.common.statements import at, loop
from microtir.operators.arithmetic.definition import Add, AddParams, add_params
from microtir.operators.common.multiplier import QuantizedMultiplier
from microtir.plan.ir import Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType

WIDENED = 20  # bits, as TFLite has it
LARGEST_SUM = 2 * 255 << (WIDENED - 1)
_HALF = QuantizedMultiplier(1 << 30, 0)


@dataclass(frozen=True, slots=True)
class HalvedAdd:
    """An addition.

    Attributes:
        half: number of the operand that is shifted, 0 or 1.
        factor: of the other one; its shift is at most 0.
        zero_points: of the operand that is shifted, and of the other one.
        params: of the operator.
    """

    half: int
    factor: QuantizedMultiplier
    zero_points: tuple[int, int]
    params: AddParams


def halved_add(node: Node) -> HalvedAdd | None:
    """Return the parameters of an ADD; None if no factor is one half."""
    assert isinstance(node.op, Add)
    p = add_params(node.op, node.inputs[0].type, node.inputs[1].type, node.output.type)
    factors, zero_points = (p.input1, p.input2), (p.input1_zero_point, p.input2_zero_point)
    if _HALF not in factors:
        return None
    half = factors.index(_HALF)
    return HalvedAdd(half, factors[1 - half], (zero_points[half], zero_points[1 - half]), p)


def add_refusal(node: Node, most: int | None = None) -> Refusal | None:
    """Return what speaks against a kernel for rows.

    Int8 activations of one shape, at most so many.
    """
    reason = activations_refusal(node)
    if reason is not None:
        return reason
    count = node.output.type.row_elements
    return Refusal.SIZES if count == 0 or (most is not None and count > most) else None


def scaled_once(x: te.Expr, offset: te.Expr, multiplier: te.Expr) -> te.Expr:
    """Return the operand that is multiplied, rounded once.

    It is widened by a bit more than TFLite does, so that the upper word of its product is rounded.

    Args:
        x: the element, int8.
        offset: its zero point, negative and widened by as much.
        multiplier: of its factor.
    """
    wide = (te.cast(DType.INT32, x) << (WIDENED + 1)) + offset
    product = te.cast(DType.INT64, wide) * te.cast(DType.INT64, multiplier)
    return te.cast(DType.INT32, (product + (1 << 31)) >> 32)


def emit_rows(
    layer: Layer, name: str, kernel: KernelDescription, half: int, words: Sequence[int]
) -> ir.PrimFunc:
    """Emit the layer function that adds row by row.

    Args:
        layer: of an addition.
        name: of the function.
        kernel: parameters: operand `half`, the other one, the output, the words.
        half: the number of the input that comes first.
        words: constants of the kernel.
    """
    edges = [layer.input_rows(0), layer.input_rows(1)]
    y = layer.output_rows()
    constants = constant("constants", np.array(words, np.int32))
    body = loop(
        "row", layer.y0, layer.y1,
        lambda row: call(
            kernel,
            edges[half].at(row, 0, 0),
            edges[1 - half].at(row, 0, 0),
            y.at(row, 0, 0),
            at(constants, 0),
        ),
    )  # fmt: skip
    return layer.function(name, None, body)
