"""ADD of two activations of one shape, one of which is only shifted, eight elements at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from microtir import te
from microtir.config.features import Feature
from microtir.graph.ir import Node
from microtir.kernels.common.halved_add import (
    LARGEST_SUM,
    WIDENED,
    add_refusal,
    halved_add,
    scaled_once,
)
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.statements import at, let, load, loop
from microtir.kernels.x86_avx2.micro_kernel import LANES, constant, describe
from microtir.kernels.x86_avx2.requantise import Output, Rescaling
from microtir.operators.arithmetic.definition import Add
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType

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
    found = halved_add(node)
    if found is None:
        return None
    p, other = found.params, found.factor
    output = Output(p.output_zero_point, p.activation_min, p.activation_max)
    channel = output.channel(p.output, 0, LARGEST_SUM)
    if channel is None or other.shift > 0:
        return None
    words = (
        -found.zero_points[0] << (WIDENED - 1),
        -found.zero_points[1] << (WIDENED + 1),
        other.multiplier,
        channel.multiplier,
        channel.shift,
    )
    return _Sum(found.half, -other.shift, output.rescaling, words, channel.rounding)


class Add8(Kernel):
    """Eight sums of a vector."""

    name = "add_lanes"
    operators = (Add,)
    needs = Feature.VECTOR

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: int8 activations of one shape, one factor of a half."""
        reason = add_refusal(node)
        return Refusal.SCALES if reason is None and _sum(node) is None else reason

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions, from counts of the compiled kernel for AVX2."""
        return node.output.type.elements * 5 + node.output.type.rows * 20

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: one call of the kernel for each row."""
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
        return scaled_once(load(x2, i), word(_OTHER_OFFSET), word(_OTHER_MULTIPLIER))

    def divided(high: te.Expr) -> te.Expr:
        return (high + (high >> 31) + (1 << (shift - 1))) >> shift if shift else high

    def element(i: te.Expr) -> ir.Stmt:
        shifted = (te.cast(DType.INT32, load(x1, i)) << (WIDENED - 1)) + word(_OFFSET)
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
