"""ADD of two activations of one shape, one of which is only shifted.

TFLite widens both operands by 20 bits, rescales them by s1 / 2s and s2 / 2s, where s is the larger
of their scales, and rounds each twice.  For the operand that has the larger scale the factor is
one half, and rounding never happens: it is shifted.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common import refusals, statements
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.micro_kernel import call
from microtir.operators.arithmetic.definition import Add, AddParams, add_params
from microtir.operators.common.multiplier import QuantizedMultiplier
from microtir.plan.ir import Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

WIDENED = 20  # bits, as TFLite has it
LARGEST_SUM = 2 * 255 << (WIDENED - 1)
_HALF = QuantizedMultiplier(1 << 30, 0)
Arguments = tuple[ir.BufferArgument, ...]


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
    p = add_params(node.attributes(Add), node.inputs[0].type, node.inputs[1].type, node.output.type)
    factors, zero_points = (p.input1, p.input2), (p.input1_zero_point, p.input2_zero_point)
    if _HALF not in factors:
        return None
    half = factors.index(_HALF)
    return HalvedAdd(half, factors[1 - half], (zero_points[half], zero_points[1 - half]), p)


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


@dataclass(frozen=True, slots=True)
class RowAdd:
    """A micro-kernel that adds a row, and its constants."""

    kernel: KernelDescription
    constants: tuple[ir.Buffer, ...]


class HalvedAddKernel(Kernel):
    """A kernel of such additions: a call of a micro-kernel for each row."""

    operators = (Add,)
    most: int | None = None  # elements of a row
    constant_bytes: int

    @abstractmethod
    def row_add(self, count: int, addition: HalvedAdd) -> RowAdd | None:
        """Return what adds `count` elements; None if a factor does not fit."""

    def arguments(
        self, operands: Arguments, y: ir.BufferArgument, constants: Arguments
    ) -> Arguments:
        """Return what the micro-kernel is given; the operand that is shifted comes first."""
        return (*operands, y, *constants)

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: int8 activations of one shape, one factor of a half."""
        reason = refusals.activations_refusal(node)
        if reason is not None:
            return reason
        count = node.output.type.row_elements
        if count == 0 or (self.most is not None and count > self.most):
            return Refusal.SIZES
        addition = halved_add(node)
        fits = addition is not None and self.row_add(count, addition) is not None
        return None if fits else Refusal.SCALES

    def packed_bytes(self, _node: Node) -> int:
        return self.constant_bytes

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: one call of the kernel for each row."""
        addition = refusals.asked(halved_add(layer.node))
        row_add = refusals.asked(self.row_add(layer.node.output.type.row_elements, addition))
        edges = [layer.input_rows(0), layer.input_rows(1)]
        y = layer.output_rows()
        constants = tuple(statements.at(buffer, 0) for buffer in row_add.constants)

        def row(number: te.Expr) -> ir.Stmt:
            operands = tuple(edges[n].at(number, 0, 0) for n in (addition.half, 1 - addition.half))
            return call(row_add.kernel, *self.arguments(operands, y.at(number, 0, 0), constants))

        return layer.function(name, None, statements.loop("row", layer.y0, layer.y1, row))
