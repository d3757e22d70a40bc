"""ADD of two activations of one shape, one of which is only shifted, four elements at a time."""

from __future__ import annotations

from dataclasses import dataclass

from microtir import te
from microtir.config.features import Feature
from microtir.graph.ir import Node
from microtir.kernels.arm_mve.requantise import Rescaling
from microtir.kernels.common.halved_add import WIDENED, add_refusal, emit_rows, halved_add
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.micro_kernel import describe
from microtir.kernels.common.statements import load, loop, store
from microtir.operators.arithmetic.definition import Add
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType

_LARGEST = 0xFFFF  # what MOVW loads
_LEAST_SHIFT = -31
# Words of the constants, in the order of the registers that they are loaded into.
_WORDS = 6
_OFFSET1, _OFFSET2, _MULTIPLIER2, _SHIFT2, _MULTIPLIER, _SHIFT = range(_WORDS)


@dataclass(frozen=True, slots=True)
class _Sum:
    """The rescaled sum: operand `half` is shifted, the other one multiplied."""

    half: int  # 0 or 1
    rescaling: Rescaling
    words: tuple[int, ...]

    @property
    def divides_operand(self) -> bool:
        """Return whether the multiplied operand is rounded a second time."""
        return self.words[_SHIFT2] < 0

    @property
    def divides_sum(self) -> bool:
        return self.words[_SHIFT] < 0


def _sum(node: Node) -> _Sum | None:
    found = halved_add(node)
    if found is None:
        return None
    p, other = found.params, found.factor
    if not all(_LEAST_SHIFT <= factor.shift <= 0 for factor in (other, p.output)):
        return None
    words = (
        -found.zero_points[0] << (WIDENED - 1),
        -found.zero_points[1] << WIDENED,
        other.multiplier,
        other.shift,
        p.output.multiplier,
        p.output.shift,
    )
    rescaling = Rescaling(p.output_zero_point, p.activation_min, p.activation_max)
    return _Sum(found.half, rescaling, words)


class Add4(Kernel):
    """One operand is shifted, the other one multiplied, four elements at a time."""

    name = "add_vectors"
    operators = (Add,)
    needs = Feature.MVE
    cycles = 176

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: int8 activations of one shape, one factor of a half."""
        reason = add_refusal(node, _LARGEST)
        return Refusal.SCALES if reason is None and _sum(node) is None else reason

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions, from counts of the emulated Cortex-M55."""
        return node.output.type.elements * 9 // 2 + node.output.type.rows * 30

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: one call of the kernel for each row."""
        node = layer.node
        total = _sum(node)
        assert total is not None, "refusal() was asked"
        kernel = _add(node.output.type.row_elements, total)
        return emit_rows(layer, name, kernel, total.half, total.words)


def _add(count: int, total: _Sum) -> KernelDescription:
    """Add `count` elements.

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
        result = total.rescaling.apply(both, load(words, _MULTIPLIER), load(words, _SHIFT))
        return store(y, (i,), result)

    steps = f"{int(total.divides_operand)}{int(total.divides_sum)}"
    return describe(
        f"add_{count}_{steps}_{total.rescaling.name}",
        (f"Adds {count} elements",),
        (x1, x2, y, words),
        (y,),
        loop("i", 0, count, element),
        "kernels/mve/add.j2",
        {
            "count": str(count),
            "rescaling": total.rescaling.values(),
            "divides_operand": total.divides_operand,
            "divides_sum": total.divides_sum,
            "shift1": str(WIDENED - 1),
            "shift2": str(WIDENED),
        },
        stack_bytes=48,
        needs=Feature.MVE,
    )
