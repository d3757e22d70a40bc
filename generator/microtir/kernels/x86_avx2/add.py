"""ADD of two activations of one shape, one of which is only shifted, eight elements at a time."""

from __future__ import annotations

import numpy as np

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common import halved_add
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.statements import let, load, loop
from microtir.kernels.x86_avx2.micro_kernel import LANES, constant, describe
from microtir.kernels.x86_avx2.requantise import Output, Rescaling
from microtir.plan.ir import Calls
from microtir.schedule import KernelDescription
from microtir.tir import ir

_STACK = 4096  # for vectors that a compiler keeps there if it does not optimise
# Words of the constants.
_WORDS = 5
_OFFSET, _OTHER_OFFSET, _OTHER_MULTIPLIER, _MULTIPLIER, _SHIFT = range(_WORDS)


class Add8(halved_add.HalvedAddKernel):
    """Eight sums of a vector."""

    name = "add_s8_1x8_avx2"
    needs = Feature.VECTOR
    constant_bytes = _WORDS * DType.INT32.bytes + DType.INT64.bytes

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions, from counts of the compiled kernel for AVX2."""
        return node.output.type.elements * 5 + node.output.type.rows * 20

    def row_add(self, count: int, addition: halved_add.HalvedAdd) -> halved_add.RowAdd | None:
        p, other = addition.params, addition.factor
        output = Output(p.output_zero_point, p.activation_min, p.activation_max)
        channel = output.channel(p.output, 0, halved_add.LARGEST_SUM)
        if channel is None or other.shift > 0:
            return None
        words = (
            -addition.zero_points[0] << (halved_add.WIDENED - 1),
            -addition.zero_points[1] << (halved_add.WIDENED + 1),
            other.multiplier,
            channel.multiplier,
            channel.shift,
        )
        constants = constant("constants", np.array(words, np.int32))
        rounding = constant("rounding", np.array([channel.rounding], np.int64))
        return halved_add.RowAdd(add(count, -other.shift, output.rescaling), (constants, rounding))

    def arguments(
        self, operands: halved_add.Arguments, y: ir.BufferArgument, constants: halved_add.Arguments
    ) -> halved_add.Arguments:
        return (*operands, *constants, y)


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
        return halved_add.scaled_once(load(x2, i), word(_OTHER_OFFSET), word(_OTHER_MULTIPLIER))

    def divided(high: te.Expr) -> te.Expr:
        return (high + (high >> 31) + (1 << (shift - 1))) >> shift if shift else high

    def element(i: te.Expr) -> ir.Stmt:
        shifted = (te.cast(DType.INT32, load(x1, i)) << (halved_add.WIDENED - 1)) + word(_OFFSET)
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
