"""ADD of two activations of one shape, one of which is only shifted, four elements at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from microtir import te
from microtir.config import Feature
from microtir.config.target import Target
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common import halved_add, micro_kernel, requantise
from microtir.kernels.common.kernel import passes_constants
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.packing import constant
from microtir.kernels.common.statements import let, load, loop, store
from microtir.plan.ir import Calls
from microtir.schedule import KernelDescription
from microtir.tir import ir

_LARGEST = 0xFFFF  # what MOVW loads
_PER_TURN = 4
# Words of the constants, in the order of the registers r4 to r11 that they are loaded into.
_OFFSET2, _MULTIPLIER2, _ROUNDING2, _OFFSET1, _UNUSED, _MULTIPLIER, _ROUNDING, _SHIFT = range(8)


class ShiftedAdd(halved_add.HalvedAddKernel):
    """The kernel with the assembly for CPUs with Arm's DSP extension, or as C alone.

    Args:
        name: of the kernel.
        per_element: instructions, from counts of the emulated Cortex-M4 and, for C, Cortex-M3.
        cycles: of 100 instructions.
        has_assembly: or not.
    """

    most = _LARGEST
    constant_bytes = 8 * DType.INT32.bytes

    def __init__(self, name: str, per_element: int, cycles: int, *, has_assembly: bool) -> None:
        self.name, self.per_element, self.cycles = name, per_element, cycles
        self.has_assembly = has_assembly
        self.needs = Feature.DSP if has_assembly else None

    def suits(self, target: Target) -> bool:
        return self.has_assembly or passes_constants(target)

    def instructions(self, node: Node, _calls: Calls) -> int:
        return node.output.type.elements * self.per_element + node.output.type.rows * 40

    def row_add(self, count: int, addition: halved_add.HalvedAdd) -> halved_add.RowAdd | None:
        p, other = addition.params, addition.factor
        output = requantise.rescaling_of(
            p.output, halved_add.LARGEST_SUM, p.output_zero_point, p.activation_min,
            p.activation_max,
        )  # fmt: skip
        if output is None or other.shift > 0:
            return None
        rescaling, (multiplier, rounding, shift) = output
        words = (
            -addition.zero_points[1] << (halved_add.WIDENED + 1),
            other.multiplier,
            (1 << -other.shift) >> 1,
            -addition.zero_points[0] << (halved_add.WIDENED - 1),
            0,
            multiplier,
            rounding,
            shift,
        )
        kernel = add(count, -other.shift, rescaling)
        if not self.has_assembly:
            kernel = replace(kernel, assembly=None)
        return halved_add.RowAdd(kernel, (constant("constants", np.array(words, np.int32)),))


@made_once
def add(count: int, shift: int, rescaling: requantise.Rescaling) -> KernelDescription:
    """Add `count` elements.

    Args:
        count: of elements.
        shift: right shift of the operand that is multiplied.
        rescaling: of the sum.

    Returns:
        Parameters: the operand that is shifted, the one that is multiplied, the output, and eight
        words of constants.
    """
    x1 = ir.Buffer("x1", (count,), DType.INT8)
    x2 = ir.Buffer("x2", (count,), DType.INT8)
    y = ir.Buffer("y", (count,), DType.INT8)
    words = ir.Buffer("constants", (8,), DType.INT32)

    def word(number: int) -> te.Expr:
        return load(words, number)

    def scaled(i: te.Expr) -> te.Expr:
        return halved_add.scaled_once(load(x2, i), word(_OFFSET2), word(_MULTIPLIER2))

    def divided(high: te.Expr) -> te.Expr:
        return (high + (high >> 31) + word(_ROUNDING2)) >> shift if shift else high

    def element(i: te.Expr) -> ir.Stmt:
        shifted = (te.cast(DType.INT32, load(x1, i)) << (halved_add.WIDENED - 1)) + word(_OFFSET1)

        def result(high: te.Expr) -> ir.Stmt:
            doubled = (shifted + divided(high)) * 2
            value = rescaling.rescale(doubled, word(_MULTIPLIER), word(_ROUNDING), word(_SHIFT))
            return store(y, (i,), value)

        return let("high", scaled(i), result)

    turns = micro_kernel.repeated(count, _PER_TURN)
    return micro_kernel.describe(
        f"add_{count}_{shift}_{rescaling.name}",
        (f"Adds {count} elements",),
        (x1, x2, y, words),
        (y,),
        loop("i", 0, count, element),
        "kernels/add.j2",
        {
            **turns,
            "rescaling": rescaling.values(),
            "shift": str(shift) if shift else "",
            "loop_bytes": str(count),
        },
        stack_bytes=36,
    )
