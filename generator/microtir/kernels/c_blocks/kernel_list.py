"""The kernels in plain C: blocks of sums in registers, of int8, int16 and float32."""

from __future__ import annotations

from microtir.config import Feature
from microtir.config.target import Target
from microtir.dtype import DType
from microtir.instruction_sets import instruction_set
from microtir.kernels.c_blocks import convolution, dense, depthwise, winograd
from microtir.kernels.c_blocks.blocks import Suits
from microtir.kernels.c_blocks.convolution import Convolution
from microtir.kernels.c_blocks.dense import Dense
from microtir.kernels.c_blocks.depthwise import Depthwise
from microtir.kernels.c_blocks.finish import RawSums
from microtir.kernels.c_blocks.matmul import Matmul
from microtir.kernels.c_blocks.recurrent import Filters, Recurrent
from microtir.kernels.c_blocks.winograd import Winograd
from microtir.kernels.common.kernel import Kernel, passes_constants
from microtir.kernels.common.transposed import Transposed


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
    *(
        Matmul(f"matmul_f32_{name}", form, cycles, suits, dtype=_F32)
        for name, form, cycles, suits in _FLOATS
    ),
    Winograd("conv_s8_16x2_c_winograd", winograd.FAST, _multiplies_and_adds),
    Winograd("conv_s8_16x4_c_winograd", winograd.WIDE, _has_many_registers),
    Winograd("conv_s8_16x1_c_winograd", winograd.NARROW, _has_few_registers),
    Depthwise("dwconv_s8_4x1_c", depthwise.FAST, 125, _takes_long_turns),
    Depthwise("dwconv_s8_6x1_c", depthwise.WIDE, 125, _reads_in_turn),
    Depthwise("dwconv_f32_6x1_c", depthwise.FAST, 176, dtype=_F32),
    Depthwise(
        "dwconv_f32_6x1_c_no_fp_contract",
        depthwise.NO_FP_CONTRACT,
        118,
        _waits_for_products,
        dtype=_F32,
    ),
    Dense("dense_s8_1x8_c", dense.PLAIN, 123),
    Dense("dense_f32_1x8_c", dense.PLAIN, 190, dtype=_F32),
    Dense(
        "dense_f32_1x8_c_no_fp_contract", dense.NO_FP_CONTRACT, 116, _waits_for_products, dtype=_F32
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
    Convolution("conv_s16_4x2_c", convolution.FAST, 126, _takes_long_turns, dtype=_I16),
    Convolution("conv_s16_4x2_c_compact", convolution.COMPACT, 128, dtype=_I16),
    Convolution("conv_s16_4x4_c", convolution.WIDE, 128, _reads_in_turn, dtype=_I16),
    Depthwise("dwconv_s16_4x1_c", depthwise.FAST, 125, _takes_long_turns, dtype=_I16),
    Depthwise("dwconv_s16_6x1_c", depthwise.WIDE, 125, _reads_in_turn, dtype=_I16),
    Dense("dense_s16_1x8_c", dense.PLAIN, 123, dtype=_I16),
)
