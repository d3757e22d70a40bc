"""ADD of two activations of one shape, eight elements at a time.

TFLite widens both operands by 20 bits, rescales them by s1 / 2s and s2 / 2s, where s is the larger
of their scales, and rounds each twice.  For the operand that has the larger scale the factor is
one half, and rounding never happens: it is shifted.  The other one is widened by 21 bits, so that
the upper word of its product is rounded at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from microtir import te
from microtir.graph.ir import Node
from microtir.graph.ops import Add
from microtir.graph.quantization import QuantizedMultiplier, add_params
from microtir.lowering.dsp.code import at, let, load, loop
from microtir.lowering.layer import Layer
from microtir.lowering.made_once import made_once
from microtir.lowering.refusals import activations_refusal
from microtir.lowering.vector.micro_kernel import LANES, call, constant, describe
from microtir.lowering.vector.requantise import Output, Rescaling
from microtir.plan.ir import Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType

_WIDENED = 20  # bits, as TFLite has it
_LARGEST_SUM = 2 * 255 << (_WIDENED - 1)
_HALF = QuantizedMultiplier(1 << 30, 0)
_STACK = 4096  # for vectors that a compiler keeps there if it does not optimise
# Words of the constants.
_WORDS = 5
_OFFSET, _OTHER_OFFSET, _OTHER_MULTIPLIER, _MULTIPLIER, _SHIFT = range(_WORDS)


@dataclass(frozen=True, slots=True)
class _Sum:
    """The rescaled sum: operand `half` is shifted, the other one multiplied."""

    half: int  # 0 or 1
    shift: int  # of the multiplied operand
    rescaling: Rescaling
    words: tuple[int, ...]
    rounding: int


def _sum(node: Node) -> _Sum | None:
    op = node.op
    assert isinstance(op, Add)
    p = add_params(op, node.inputs[0].type, node.inputs[1].type, node.output.type)
    factors, zero_points = (p.input1, p.input2), (p.input1_zero_point, p.input2_zero_point)
    if _HALF not in factors:
        return None
    half = factors.index(_HALF)
    other = factors[1 - half]
    output = Output(p.output_zero_point, p.activation_min, p.activation_max)
    found = output.channel(p.output, 0, _LARGEST_SUM)
    if found is None or other.shift > 0:
        return None
    words = (
        -zero_points[half] << (_WIDENED - 1),
        -zero_points[1 - half] << (_WIDENED + 1),
        other.multiplier,
        found.multiplier,
        found.shift,
    )
    return _Sum(half, -other.shift, output.rescaling, words, found.rounding)


def refusal(node: Node) -> Refusal | None:
    """What speaks against it: int8 activations of one shape, one factor of a half."""
    reason = activations_refusal(node)
    if reason is not None:
        return reason
    if node.output.type.row_elements == 0:
        return Refusal.SIZES
    return Refusal.SCALES if _sum(node) is None else None


def cost(node: Node) -> int:
    """Instructions, from counts of the compiled kernel for AVX2."""
    return node.output.type.elements * 5 + node.output.type.rows * 20


def emit(layer: Layer, name: str) -> ir.PrimFunc:
    """The layer function: one call of the kernel for each row."""
    total = _sum(layer.node)
    assert total is not None, "refusal() was asked"
    edges = [layer.input_rows(0), layer.input_rows(1)]
    y = layer.output_rows()
    words = constant("constants", np.array(total.words, np.int32))
    rounding = constant("rounding", np.array([total.rounding], np.int64))
    kernel = add(layer.node.output.type.row_elements, total.shift, total.rescaling)
    body = loop(
        "row", layer.y0, layer.y1,
        lambda row: call(
            kernel,
            edges[total.half].at(row, 0, 0),
            edges[1 - total.half].at(row, 0, 0),
            at(words, 0),
            at(rounding, 0),
            y.at(row, 0, 0),
        ),
    )  # fmt: skip
    return layer.function(name, None, body)


@made_once
def add(count: int, shift: int, rescaling: Rescaling) -> KernelDescription:
    """Adds `count` elements.

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
        wide = (te.cast(DType.INT32, load(x2, i)) << (_WIDENED + 1)) + word(_OTHER_OFFSET)
        product = te.cast(DType.INT64, wide) * te.cast(DType.INT64, word(_OTHER_MULTIPLIER))
        return te.cast(DType.INT32, (product + (1 << 31)) >> 32)

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
