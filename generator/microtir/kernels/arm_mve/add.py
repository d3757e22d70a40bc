"""ADD of two activations of one shape, one of which is only shifted, four elements at a time."""

from __future__ import annotations

import numpy as np

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_mve.requantise import Rescaling
from microtir.kernels.common import micro_kernel, packing
from microtir.kernels.common.halved_add import WIDENED, HalvedAdd, HalvedAddKernel, RowAdd
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.statements import load, loop, store
from microtir.plan.ir import Calls
from microtir.schedule import KernelDescription
from microtir.tir import ir

_LARGEST = 0xFFFF  # what MOVW loads
_LEAST_SHIFT = -31
# Words of the constants, in the order of the registers that they are loaded into.
_WORDS = 6
_OFFSET1, _OFFSET2, _MULTIPLIER2, _SHIFT2, _MULTIPLIER, _SHIFT = range(_WORDS)


class Add4(HalvedAddKernel):
    """One operand is shifted, the other one multiplied, four elements at a time."""

    name = "add_s8_1x4_mve"
    needs = Feature.MVE
    cycles = 176
    most = _LARGEST
    constant_bytes = _WORDS * DType.INT32.bytes

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions, from counts of the emulated Cortex-M55."""
        return node.output.type.elements * 9 // 2 + node.output.type.rows * 30

    def row_add(self, count: int, addition: HalvedAdd) -> RowAdd | None:
        p, other = addition.params, addition.factor
        if not all(_LEAST_SHIFT <= factor.shift <= 0 for factor in (other, p.output)):
            return None
        words = (
            -addition.zero_points[0] << (WIDENED - 1),
            -addition.zero_points[1] << WIDENED,
            other.multiplier,
            other.shift,
            p.output.multiplier,
            p.output.shift,
        )
        rescaling = Rescaling(p.output_zero_point, p.activation_min, p.activation_max)
        kernel = _add(count, other.shift < 0, p.output.shift < 0, rescaling)
        return RowAdd(kernel, (packing.constant("constants", np.array(words, np.int32)),))


@made_once
def _add(
    count: int, divides_operand: bool, divides_sum: bool, rescaling: Rescaling
) -> KernelDescription:
    """Add `count` elements.

    Args:
        count: of elements.
        divides_operand: whether the multiplied operand is rounded a second time.
        divides_sum: whether the sum is.
        rescaling: of the sum.

    Returns:
        Parameters: the operand that is shifted, the one that is multiplied, the output, and the
        words of constants.
    """
    x1 = ir.Buffer("x1", (count,), DType.INT8)
    x2 = ir.Buffer("x2", (count,), DType.INT8)
    y = ir.Buffer("y", (count,), DType.INT8)
    words = ir.Buffer("constants", (_WORDS,), DType.INT32)

    def wide(x: ir.Buffer, i: te.Expr, bits: int, offset: int) -> te.Expr:
        return (te.cast(DType.INT32, load(x, i)) << bits) + load(words, offset)

    def element(i: te.Expr) -> ir.Stmt:
        operand = te.rounding_divide_by_pot(
            te.saturating_rounding_doubling_high_mul(
                wide(x2, i, WIDENED, _OFFSET2), load(words, _MULTIPLIER2)
            ),
            -load(words, _SHIFT2),
        )
        both = wide(x1, i, WIDENED - 1, _OFFSET1) + operand
        result = rescaling.apply(both, (load(words, _MULTIPLIER), load(words, _SHIFT)))
        return store(y, (i,), result)

    steps = f"{int(divides_operand)}{int(divides_sum)}"
    return micro_kernel.describe(
        f"add_{count}_{steps}_{rescaling.name}",
        (f"Adds {count} elements",),
        (x1, x2, y, words),
        (y,),
        loop("i", 0, count, element),
        "kernels/mve/add.j2",
        {
            "count": str(count),
            "rescaling": rescaling.values(),
            "divides_operand": divides_operand,
            "divides_sum": divides_sum,
            "shift1": str(WIDENED - 1),
            "shift2": str(WIDENED),
        },
        stack_bytes=48,
        needs=Feature.MVE,
    )
