"""ADD of two activations of one shape, four elements at a time.

As in `dsp.add`, the factor of the operand that has the larger scale is one half: it is shifted.
"""

from __future__ import annotations

from dataclasses import dataclass

from microtir import te
from microtir.config.features import Feature
from microtir.graph.ir import Node
from microtir.graph.ops import Add
from microtir.graph.quantization import QuantizedMultiplier, add_params
from microtir.lowering.dsp.add import emit_rows
from microtir.lowering.dsp.code import load, loop, store
from microtir.lowering.dsp.micro_kernel import describe
from microtir.lowering.layer import Layer
from microtir.lowering.mve.requantise import Rescaling
from microtir.lowering.refusals import activations_refusal
from microtir.plan.ir import Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType

_WIDENED = 20  # bits, as TFLite has it
_HALF = QuantizedMultiplier(1 << 30, 0)
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
        """Whether the multiplied operand is rounded a second time."""
        return self.words[_SHIFT2] < 0

    @property
    def divides_sum(self) -> bool:
        return self.words[_SHIFT] < 0


def _sum(node: Node) -> _Sum | None:
    op = node.op
    assert isinstance(op, Add)
    p = add_params(op, node.inputs[0].type, node.inputs[1].type, node.output.type)
    factors = (p.input1, p.input2)
    zero_points = (p.input1_zero_point, p.input2_zero_point)
    if _HALF not in factors:
        return None
    half = factors.index(_HALF)
    other = factors[1 - half]
    if not all(_LEAST_SHIFT <= factor.shift <= 0 for factor in (other, p.output)):
        return None
    words = (
        -zero_points[half] << (_WIDENED - 1),
        -zero_points[1 - half] << _WIDENED,
        other.multiplier,
        other.shift,
        p.output.multiplier,
        p.output.shift,
    )
    rescaling = Rescaling(p.output_zero_point, p.activation_min, p.activation_max)
    return _Sum(half, rescaling, words)


def refusal(node: Node) -> Refusal | None:
    """What speaks against it: int8 activations of one shape, one factor of a half."""
    reason = activations_refusal(node)
    if reason is not None:
        return reason
    if not 0 < node.output.type.row_elements <= _LARGEST:
        return Refusal.SIZES
    return Refusal.SCALES if _sum(node) is None else None


def cost(node: Node) -> int:
    """Instructions, from counts of the emulated Cortex-M55."""
    return node.output.type.elements * 9 // 2 + node.output.type.rows * 30


def emit(layer: Layer, name: str) -> ir.PrimFunc:
    """The layer function: one call of the kernel for each row."""
    node = layer.node
    total = _sum(node)
    assert total is not None, "refusal() was asked"
    kernel = _add(node.output.type.row_elements, total)
    return emit_rows(layer, name, kernel, total.half, total.words)


def _add(count: int, total: _Sum) -> KernelDescription:
    """Adds `count` elements.

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
                wide(x2, i, _WIDENED, _OFFSET2), load(words, _MULTIPLIER2)
            ),
            -load(words, _SHIFT2),
        )
        both = wide(x1, i, _WIDENED - 1, _OFFSET1) + operand
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
            "shift1": str(_WIDENED - 1),
            "shift2": str(_WIDENED),
        },
        stack_bytes=48,
        needs=Feature.MVE,
    )
