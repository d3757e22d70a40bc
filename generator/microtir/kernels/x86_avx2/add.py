"""ADD of two activations of one shape, one of which is only shifted, eight elements at a time.

TFLite widens both operands by 20 bits, rescales them by s1 / 2s and s2 / 2s, where s is the larger
of their scales, and rounds each twice.  For the operand that has the larger scale the factor is
one half, and rounding never happens: it is shifted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common import refusals
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.statements import at, let, load, loop
from microtir.kernels.x86_avx2.micro_kernel import LANES, constant, describe
from microtir.kernels.x86_avx2.requantise import Output, Rescaling
from microtir.operators.arithmetic.definition import Add, add_params
from microtir.operators.common.multiplier import QuantizedMultiplier
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_WIDENED = 20  # bits, as TFLite has it
_LARGEST_SUM = 2 * 255 << (_WIDENED - 1)
_HALF = QuantizedMultiplier(1 << 30, 0)
_STACK = 4096  # for vectors that a compiler keeps there if it does not optimise
# Words of the constants.
_WORDS = 5
_OFFSET, _OTHER_OFFSET, _OTHER_MULTIPLIER, _MULTIPLIER, _SHIFT = range(_WORDS)


@dataclass(frozen=True, slots=True)
class _RowAdd:
    """A micro-kernel that adds a row, its constants, and the number of the shifted operand."""

    kernel: KernelDescription
    constants: tuple[ir.Buffer, ...]
    half: int


def _row_add(node: Node) -> _RowAdd | None:
    """Return what adds a row; None if no factor is one half, or another one does not fit."""
    p = add_params(node.attributes(Add), node.inputs[0].type, node.inputs[1].type, node.output.type)
    factors, zero_points = (p.input1, p.input2), (p.input1_zero_point, p.input2_zero_point)
    if _HALF not in factors:
        return None
    half = factors.index(_HALF)
    other = factors[1 - half]
    output = Output(p.output_zero_point, p.activation_min, p.activation_max)
    channel = output.channel(p.output, 0, _LARGEST_SUM)
    if channel is None or other.shift > 0:
        return None
    words = (
        -zero_points[half] << (_WIDENED - 1),
        -zero_points[1 - half] << (_WIDENED + 1),
        other.multiplier,
        channel.multiplier,
        channel.shift,
    )
    constants = constant("constants", np.array(words, np.int32))
    rounding = constant("rounding", np.array([channel.rounding], np.int64))
    kernel = add(node.output.type.row_elements, -other.shift, output.rescaling)
    return _RowAdd(kernel, (constants, rounding), half)


class Add8(Kernel):
    """Eight sums of a vector: a call of a micro-kernel for each row."""

    name = "add_s8_1x8_avx2"
    operators = (Add,)
    needs = Feature.VECTOR

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: int8 activations of one shape, one factor of a half."""
        reason = refusals.activations_refusal(node)
        if reason is not None:
            return reason
        if node.output.type.row_elements == 0:
            return Refusal.SIZES
        return Refusal.SCALES if _row_add(node) is None else None

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions, from counts of the compiled kernel for AVX2."""
        return node.output.type.elements * 5 + node.output.type.rows * 20

    def packed_bytes(self, _node: Node) -> int:
        return _WORDS * DType.INT32.bytes + DType.INT64.bytes

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: the operand that is shifted comes first."""
        row_add, y = refusals.asked(_row_add(layer.node)), layer.output_rows()
        edges = [layer.input_rows(n) for n in (row_add.half, 1 - row_add.half)]
        constants = [at(buffer, 0) for buffer in row_add.constants]

        def row(number: te.Expr) -> ir.Stmt:
            operands = [edge.at(number, 0, 0) for edge in edges]
            return call(row_add.kernel, *operands, *constants, y.at(number, 0, 0))

        return layer.function(name, None, loop("row", layer.y0, layer.y1, row))


def _scaled_once(x: te.Expr, offset: te.Expr, multiplier: te.Expr) -> te.Expr:
    """Return the operand that is multiplied, rounded once.

    It is widened by a bit more than TFLite does, so that the upper word of its product is rounded.

    Args:
        x: the element, int8.
        offset: its zero point, negative and widened by as much.
        multiplier: of its factor.
    """
    wide = (te.cast(DType.INT32, x) << (_WIDENED + 1)) + offset
    product = te.cast(DType.INT64, wide) * te.cast(DType.INT64, multiplier)
    return te.cast(DType.INT32, (product + (1 << 31)) >> 32)


@made_once
def add(count: int, shift: int, rescaling: Rescaling) -> KernelDescription:
    """Add `count` elements.

    Args:
        count: of elements.
        shift: right shift of the operand that is multiplied.
        rescaling: of the sum.

    Returns:
        Parameters: the operand that is shifted, the one that is multiplied, five words of
        constants, the rounding of the sum, the output.
    """
    x1, x2 = ir.Buffer("x1", (count,), DType.INT8), ir.Buffer("x2", (count,), DType.INT8)
    constants = ir.Buffer("constants", (_WORDS,), DType.INT32)
    rounding = ir.Buffer("rounding", (1,), DType.INT64)
    y = ir.Buffer("y", (count,), DType.INT8)

    def word(number: int) -> te.Expr:
        return load(constants, number)

    def scaled(i: te.Expr) -> te.Expr:
        return _scaled_once(load(x2, i), word(_OTHER_OFFSET), word(_OTHER_MULTIPLIER))

    def divided(high: te.Expr) -> te.Expr:
        return (high + (high >> 31) + (1 << (shift - 1))) >> shift if shift else high

    def element(i: te.Expr) -> ir.Stmt:
        shifted = (te.cast(DType.INT32, load(x1, i)) << (_WIDENED - 1)) + word(_OFFSET)
        factor = word(_MULTIPLIER), load(rounding, 0), word(_SHIFT)

        def result(high: te.Expr) -> ir.Stmt:
            total = shifted + divided(high)
            return let("total", total, lambda value: rescaling.store(y, i, value, factor))

        return let("high", scaled(i), result)

    return describe(
        f"add_{count}_{shift}_{rescaling.name}",
        f"Adds {count} elements",
        (x1, x2, constants, rounding, y),
        y,
        loop("i", 0, count, element),
        "kernels/vector/add.j2",
        {
            "part": "sum",
            "rescaling": rescaling.values(),
            "shift": str(shift),
            "half": str((1 << shift) >> 1),
            "whole": str(count // LANES * LANES),
            "rest": str(count % LANES) if count % LANES else "",
        },
        stack_bytes=_STACK,
    )
