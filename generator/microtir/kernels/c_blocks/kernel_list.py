"""The kernels in plain C: blocks of sums in registers, of int8 and of float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from microtir.config import Feature
from microtir.config.target import Target
from microtir.graph.ir import Node
from microtir.instruction_sets import instruction_set
from microtir.kernels.c_blocks import convolution, dense, depthwise
from microtir.kernels.common import bordered_rows
from microtir.kernels.common.kernel import SAME_ROW, Kernel, passes_constants
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.shifted_add import ShiftedAdd
from microtir.operators.common.rows import RowWindow
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.convolution.formula import row_window
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.dense.formula import keeps_rows
from microtir.plan.ir import Calls, Refusal
from microtir.tir import ir

Suits = Callable[[Target], bool]
Form = TypeVar("Form")


def _reads_in_turn(target: Target) -> bool:
    """Return whether compilers have to be kept from loading all elements of a turn first."""
    return passes_constants(target) and instruction_set(target.family).hoists_loads


def _takes_long_turns(target: Target) -> bool:
    return passes_constants(target) and not _reads_in_turn(target)


def _waits_for_products(target: Target) -> bool:
    """Return whether a multiply-add of floats takes longer than a product and a sum."""
    return instruction_set(target.family).waits_for_products(target.core, target.features)


class _Blocks(Kernel):
    """A block of sums in registers, of int8 or of float32.

    Args:
        name: of the kernel.
        cycles: of 100 instructions.
        suits: says which targets it is meant for.
        is_float: whether it computes float32, where there are instructions for that.
    """

    def __init__(self, name: str, cycles: int, suits: Suits, *, is_float: bool = False) -> None:
        self.name, self.cycles, self._suits, self.is_float = name, cycles, suits, is_float
        self.needs = Feature.FPU if is_float else None

    def suits(self, target: Target) -> bool:
        return self._suits(target)


class _WindowedBlocks(_Blocks, Generic[Form]):
    """Blocks of pixels, which read windows of rows with borders.

    Args:
        name: of the kernel.
        form: the blocks.
        cycles: of 100 instructions.
        suits: says which targets it is meant for.
        is_float: whether it computes float32.
    """

    depends_on_calls = True

    def __init__(
        self,
        name: str,
        form: Form,
        cycles: int,
        suits: Suits = passes_constants,
        *,
        is_float: bool = False,
    ) -> None:
        super().__init__(name, cycles, suits, is_float=is_float)
        self.form = form

    def window(self, node: Node) -> RowWindow | None:
        return row_window(node)

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        return bordered_rows.scratch_bytes(node)


class Convolution(_WindowedBlocks[convolution.Form]):
    """Pixels by output channels."""

    operators = (Conv2D, DepthwiseConv2D)

    def reject(self, node: Node) -> Refusal | None:
        refusal = convolution.refusal_float if self.is_float else convolution.refusal_int8
        return refusal(node)

    def instructions(self, node: Node, calls: Calls) -> int:
        return convolution.cost(node, self.form, by_rows=calls.rows > 0)

    def code_bytes(self, node: Node) -> int:
        return convolution.code_bytes(node, self.form)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        return convolution.emit(layer, name, self.form)


class Depthwise(_WindowedBlocks[depthwise.Form]):
    """Pixels of a channel, whose windows share weights and elements."""

    operators = (DepthwiseConv2D,)

    def reject(self, node: Node) -> Refusal | None:
        refusal = depthwise.refusal_float if self.is_float else depthwise.refusal_int8
        return refusal(node)

    def instructions(self, node: Node, calls: Calls) -> int:
        return depthwise.cost(node, self.form, by_rows=calls.rows > 0)

    def code_bytes(self, node: Node) -> int:
        return depthwise.code_bytes(node, self.form)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        return depthwise.emit(layer, name, self.form)


class Dense(_Blocks):
    """Several outputs for each pass over the inputs."""

    operators = (FullyConnected,)

    def __init__(
        self,
        name: str,
        cycles: int,
        suits: Suits = passes_constants,
        *,
        is_float: bool = False,
        form: dense.Form = dense.PLAIN,
    ) -> None:
        super().__init__(name, cycles, suits, is_float=is_float)
        self.form = form

    def reject(self, node: Node) -> Refusal | None:
        return dense.refusal_float(node) if self.is_float else dense.refusal_int8(node)

    def window(self, node: Node) -> RowWindow | None:
        return SAME_ROW if keeps_rows(node) else None

    def instructions(self, node: Node, _calls: Calls) -> int:
        return dense.cost(node, self.form)

    def code_bytes(self, node: Node) -> int:
        return dense.code_bytes(node, self.form)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        return dense.emit(layer, name, self.form)


KERNELS: tuple[Kernel, ...] = (
    Convolution("conv_s8_4x2_c", convolution.FAST, 126, _takes_long_turns),
    Convolution("conv_s8_4x2_c_compact", convolution.COMPACT, 128),
    Convolution("conv_s8_4x4_c", convolution.WIDE, 128, _reads_in_turn),
    Convolution("conv_f32_4x4_c", convolution.FAST, 234, _takes_long_turns, is_float=True),
    Convolution("conv_f32_4x4_c_compact", convolution.COMPACT, 214, is_float=True),
    Convolution(
        "conv_f32_4x4_c_no_fp_contract", convolution.APART, 115, _waits_for_products, is_float=True
    ),
    Depthwise("dwconv_s8_4x1_c", depthwise.FAST, 125, _takes_long_turns),
    Depthwise("dwconv_s8_6x1_c", depthwise.WIDE, 125, _reads_in_turn),
    Depthwise("dwconv_f32_6x1_c", depthwise.FAST, 176, is_float=True),
    Depthwise(
        "dwconv_f32_6x1_c_no_fp_contract", depthwise.APART, 118, _waits_for_products, is_float=True
    ),
    Dense("dense_s8_1x8_c", 123),
    Dense("dense_f32_1x8_c", 190, is_float=True),
    Dense(
        "dense_f32_1x8_c_no_fp_contract", 116, _waits_for_products, is_float=True, form=dense.APART
    ),
    ShiftedAdd("add_s8_1x4_c", 27, 118, has_assembly=False),
)
