"""The kernels in plain C: blocks of sums in registers, of int8, int16 and float32."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from microtir.config import Feature
from microtir.config.target import Target
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.instruction_sets import instruction_set
from microtir.kernels.c_blocks import convolution, dense, depthwise, matmul, recurrent, winograd
from microtir.kernels.c_blocks.finish import RawSums
from microtir.kernels.common import bordered_rows, refusals, svdf
from microtir.kernels.common.kernel import Kernel, passes_constants
from microtir.kernels.common.layer import Layer, Rows
from microtir.kernels.common.phase_kernel import PhaseKernel
from microtir.kernels.common.phases import Phase
from microtir.kernels.common.recurrent import packed_bytes
from microtir.kernels.common.transposed import Transposed
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.matmul.definition import BatchMatmul
from microtir.operators.recurrent.definition import Lstm, Svdf
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


def is_counted(target: Target) -> bool:
    """Return whether a core of 32 bits without SIMD is one whose cycles are known."""
    is_other = target.has(Feature.BIT64) or target.has(Feature.DSP)
    return not is_other and instruction_set(target.family).cpu_costs(target.core) is not None


def _multiplies_and_adds(target: Target) -> bool:
    """Return whether a product and its sum are one instruction, as in Armv7-M."""
    has_products = target.has(Feature.MUL_LONG)
    return is_counted(target) and _takes_long_turns(target) and has_products


def _has_many_registers(target: Target) -> bool:
    """Return whether a core is RISC-V with products, whose clamps are branches."""
    has_products = target.has(Feature.MUL_LONG) and not target.has(Feature.ZBB)
    return is_counted(target) and _reads_in_turn(target) and has_products


def _has_few_registers(target: Target) -> bool:
    """Return whether a core has what Armv6-M has: few registers, products of two operands."""
    has_products = target.has(Feature.MUL_LONG)
    return is_counted(target) and _takes_long_turns(target) and not has_products


class _Blocks(Kernel):
    """A block of sums in registers, of integers or of float32.

    Args:
        name: of the kernel.
        cycles: of 100 instructions.
        suits: says which targets it is meant for.
        dtype: of inputs and outputs; float32 only where there are instructions for it.
    """

    def __init__(self, name: str, cycles: int, suits: Suits, *, dtype: DType = DType.INT8) -> None:
        self.name, self.cycles, self._suits, self.dtype = name, cycles, suits, dtype
        self.needs = Feature.FPU if dtype.is_float else None

    def suits(self, target: Target) -> bool:
        return self._suits(target)


class _WindowedBlocks(_Blocks, Generic[Form]):
    """Blocks of pixels, which read windows of rows with borders.

    Args:
        name: of the kernel.
        form: the blocks.
        cycles: of 100 instructions.
        suits: says which targets it is meant for.
        dtype: of inputs and outputs.
    """

    depends_on_calls = True

    def __init__(
        self,
        name: str,
        form: Form,
        cycles: int,
        suits: Suits = passes_constants,
        *,
        dtype: DType = DType.INT8,
    ) -> None:
        super().__init__(name, cycles, suits, dtype=dtype)
        self.form = form

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        return bordered_rows.scratch_bytes(node)


class Convolution(_WindowedBlocks[convolution.Form], PhaseKernel):
    """Pixels by output channels."""

    operators = (Conv2D, DepthwiseConv2D)
    rescales_in_float = True

    def reject(self, node: Node) -> Refusal | None:
        return convolution.refusal(node, self.dtype)

    def instructions(self, node: Node, calls: Calls) -> int:
        return convolution.cost(node, self.form, by_rows=calls.rows > 0)

    def code_bytes(self, node: Node) -> int:
        return convolution.code_bytes(node, self.form)

    def packed_bytes(self, node: Node) -> int:
        return convolution.packed_bytes(node, self.form)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        return convolution.emit(layer, name, self.form)

    def phase_loops(self, phase: Phase, x: Rows, y: Rows, scratch: ir.Buffer) -> ir.Stmt:
        return convolution.phase_loops(phase, self.form, x, y, scratch)


class Winograd(_Blocks):
    """Tiles of two rows by two columns, whose weights were transformed offline.

    Args:
        name: of the kernel.
        form: the blocks, and what they take.
        suits: says which targets it is meant for.
    """

    operators = (Conv2D,)
    rescales_in_float = True
    depends_on_calls = True

    def __init__(self, name: str, form: winograd.Form, suits: Suits) -> None:
        super().__init__(name, Kernel.cycles, suits)
        self.form = form

    def reject(self, node: Node) -> Refusal | None:
        return winograd.refusal(node, self.form)

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        return winograd.scratch_bytes(node, self.form)

    def weight_bytes(self, node: Node) -> int:
        return winograd.weight_bytes(node, self.form)

    def instructions(self, node: Node, calls: Calls) -> int:
        return winograd.cost(node, self.form, calls)

    def cycles_of(self, node: Node, instructions: int) -> int:
        return winograd.cycles_of(node, self.form, instructions)

    def code_bytes(self, _node: Node) -> int:
        return self.form.code

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        return winograd.emit(layer, name, self.form)


class Depthwise(_WindowedBlocks[depthwise.Form]):
    """Pixels of a channel, whose windows share weights and elements."""

    operators = (DepthwiseConv2D,)
    rescales_in_float = True

    def reject(self, node: Node) -> Refusal | None:
        return depthwise.refusal(node, self.dtype)

    def instructions(self, node: Node, calls: Calls) -> int:
        return depthwise.cost(node, self.form, by_rows=calls.rows > 0)

    def code_bytes(self, node: Node) -> int:
        return depthwise.code_bytes(node, self.form)

    def packed_bytes(self, node: Node) -> int:
        return depthwise.packed_bytes(node, self.form)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        return depthwise.emit(layer, name, self.form)


class Matmul(_Blocks):
    """Rows by columns of two matrices that are known when a model runs.

    Args:
        name: of the kernel.
        form: the blocks.
        cycles: of 100 instructions.
        suits: says which targets it is meant for.
    """

    operators = (BatchMatmul,)

    def __init__(
        self, name: str, form: convolution.Form, cycles: int, suits: Suits = passes_constants
    ) -> None:
        super().__init__(name, cycles, suits, dtype=DType.FLOAT32)
        self.form = form

    def reject(self, node: Node) -> Refusal | None:
        return matmul.refusal(node)

    def instructions(self, node: Node, _calls: Calls) -> int:
        return matmul.cost(node, self.form)

    def code_bytes(self, node: Node) -> int:
        return matmul.code_bytes(node, self.form)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        return matmul.emit(layer, name, self.form)


class Dense(_Blocks):
    """Several outputs for each pass over the inputs."""

    operators = (FullyConnected,)
    rescales_in_float = True

    def __init__(
        self,
        name: str,
        cycles: int,
        suits: Suits = passes_constants,
        *,
        dtype: DType = DType.INT8,
        form: dense.Form = dense.PLAIN,
    ) -> None:
        super().__init__(name, cycles, suits, dtype=dtype)
        self.form = form

    def reject(self, node: Node) -> Refusal | None:
        return dense.refusal(node, self.dtype)

    def instructions(self, node: Node, _calls: Calls) -> int:
        return dense.cost(node, self.form)

    def code_bytes(self, node: Node) -> int:
        return dense.code_bytes(node, self.form)

    def packed_bytes(self, node: Node) -> int:
        return dense.packed_bytes(node, self.form)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        return dense.emit(layer, name, self.form)


class Recurrent(_Blocks):
    """The gates of several units for each pass over the input and over the hidden state.

    Args:
        name: of the kernel.
        sums: of elements and weights.
        cycles: of 100 instructions.
        suits: says which targets it is meant for.
    """

    operators = (Lstm,)
    in_place = True

    def __init__(
        self, name: str, sums: RawSums, cycles: int, suits: Suits = passes_constants
    ) -> None:
        super().__init__(name, cycles, suits, dtype=sums.element)
        self.sums = sums

    def reject(self, node: Node) -> Refusal | None:
        return refusals.recurrent_refusal(node, self.sums.element, self.sums.weight)

    def instructions(self, node: Node, _calls: Calls) -> int:
        return recurrent.cost(node, self.sums)

    def code_bytes(self, _node: Node) -> int:
        return recurrent.code_bytes(self.sums)

    def packed_bytes(self, node: Node) -> int:
        return packed_bytes(node, partial(recurrent.PackedRows.of, self.sums))

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        return recurrent.emit(layer, name, self.sums)


class Filters(_Blocks):
    """The features of several filters of an SVDF for each pass over the input.

    Args:
        name: of the kernel.
        sums: of elements and weights.
        cycles: of 100 instructions.
        suits: says which targets it is meant for.
    """

    operators = (Svdf,)
    has_wide_sums = True  # of time; those of features fit
    in_place = True

    def __init__(
        self, name: str, sums: RawSums, cycles: int, suits: Suits = passes_constants
    ) -> None:
        super().__init__(name, cycles, suits, dtype=sums.element)
        self.sums = sums

    def reject(self, node: Node) -> Refusal | None:
        return refusals.svdf_refusal(node, self.sums.element, self.sums.weight)

    def instructions(self, node: Node, _calls: Calls) -> int:
        return recurrent.svdf_cost(node, self.sums)

    def code_bytes(self, _node: Node) -> int:
        return recurrent.code_bytes(self.sums) // 2

    def packed_bytes(self, node: Node) -> int:
        return svdf.packed_bytes(node, partial(recurrent.PackedRows.of, self.sums))

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        return recurrent.emit_svdf(layer, name, self.sums)


_F32, _I8, _I16 = DType.FLOAT32, DType.INT8, DType.INT16

_FLOATS: tuple[tuple[str, convolution.Form, int, Suits], ...] = (
    ("4x4_c", convolution.FAST, 234, _takes_long_turns),
    ("4x4_c_compact", convolution.COMPACT, 214, passes_constants),
    ("4x4_c_no_fp_contract", convolution.NO_FP_CONTRACT, 115, _waits_for_products),
)
_CONVOLUTIONS = tuple(
    Convolution(f"conv_f32_{name}", form, cycles, suits, dtype=_F32)
    for name, form, cycles, suits in _FLOATS
)

KERNELS: tuple[Kernel, ...] = (
    Convolution("conv_s8_4x2_c", convolution.FAST, 126, _takes_long_turns),
    Convolution("conv_s8_4x2_c_compact", convolution.COMPACT, 128),
    Convolution("conv_s8_4x4_c", convolution.WIDE, 128, _reads_in_turn),
    *_CONVOLUTIONS,
    *(Transposed(f"t{of_phase.name}", of_phase, _F32, _F32) for of_phase in _CONVOLUTIONS),
    *(Matmul(f"matmul_f32_{name}", form, cycles, suits) for name, form, cycles, suits in _FLOATS),
    Winograd("conv_s8_16x2_c_winograd", winograd.FAST, _multiplies_and_adds),
    Winograd("conv_s8_16x4_c_winograd", winograd.WIDE, _has_many_registers),
    Winograd("conv_s8_16x1_c_winograd", winograd.NARROW, _has_few_registers),
    Depthwise("dwconv_s8_4x1_c", depthwise.FAST, 125, _takes_long_turns),
    Depthwise("dwconv_s8_6x1_c", depthwise.WIDE, 125, _reads_in_turn),
    Depthwise("dwconv_f32_6x1_c", depthwise.FAST, 176, dtype=DType.FLOAT32),
    Depthwise(
        "dwconv_f32_6x1_c_no_fp_contract",
        depthwise.NO_FP_CONTRACT,
        118,
        _waits_for_products,
        dtype=DType.FLOAT32,
    ),
    Dense("dense_s8_1x8_c", 123),
    Dense("dense_f32_1x8_c", 190, dtype=DType.FLOAT32),
    Dense(
        "dense_f32_1x8_c_no_fp_contract",
        116,
        _waits_for_products,
        dtype=DType.FLOAT32,
        form=dense.NO_FP_CONTRACT,
    ),
    Recurrent("lstm_s8_1x8_c", RawSums(_I8, _I8), 130),
    Recurrent("lstm_s16_1x8_c", RawSums(_I16, _I8), 130),
    Recurrent("lstm_f32_1x8_c", RawSums(_F32, _F32), 190),
    Recurrent("lstm_f32_1x8_c_no_fp_contract", RawSums(_F32, _F32, True), 116, _waits_for_products),
    Recurrent("lstm_f32_s8_1x8_c", RawSums(_F32, _I8), 190),
    Filters("svdf_s8_1x8_c", RawSums(_I8, _I8), 130),
    Filters("svdf_f32_1x8_c", RawSums(_F32, _F32), 190),
    Filters("svdf_f32_1x8_c_no_fp_contract", RawSums(_F32, _F32, True), 116, _waits_for_products),
    Filters("svdf_f32_s8_1x8_c", RawSums(_F32, _I8), 190),
    Convolution("conv_s16_4x2_c", convolution.FAST, 126, _takes_long_turns, dtype=DType.INT16),
    Convolution("conv_s16_4x2_c_compact", convolution.COMPACT, 128, dtype=DType.INT16),
    Convolution("conv_s16_4x4_c", convolution.WIDE, 128, _reads_in_turn, dtype=DType.INT16),
    Depthwise("dwconv_s16_4x1_c", depthwise.FAST, 125, _takes_long_turns, dtype=DType.INT16),
    Depthwise("dwconv_s16_6x1_c", depthwise.WIDE, 125, _reads_in_turn, dtype=DType.INT16),
    Dense("dense_s16_1x8_c", 123, dtype=DType.INT16),
)
