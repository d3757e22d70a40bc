"""The kernels for RISC-V with Zbb.

Compilers make MIN and MAX of the clamps by themselves.  What is left to say is that the outputs of
a block are then straight code, and that a float, where there is no FPU, is clamped as an integer.
"""

from __future__ import annotations

from dataclasses import replace

from microtir.config import Feature
from microtir.config.target import Target
from microtir.kernels.c_blocks import convolution, dense, depthwise, kernel_list, winograd
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.riscv_zbb import rectified
from microtir.operators import OPERATORS

_WIDE = replace(convolution.WIDE, is_straight=True)
_COMPACT = replace(convolution.COMPACT, is_straight=True)
_DEPTHWISE = replace(depthwise.WIDE, is_straight=True)
_DENSE = dense.Form(is_straight=True)
_WINOGRAD = replace(
    winograd.WIDE,
    instructions=winograd.Prices(372, 377, 1183, 0, 42.8, 19.9, 2.3, 0),
    cycles=winograd.Prices(738, 606, 1645, 0, 84.6, 30.0, 2.6, 0.1),
)


def _has_zbb(target: Target) -> bool:
    return target.has(Feature.ZBB)


def _multiplies(target: Target) -> bool:
    return kernel_list.is_counted(target) and _has_zbb(target) and target.has(Feature.MUL_LONG)


KERNELS: tuple[Kernel, ...] = (
    convolution.Convolution("conv_s8_4x4_zbb", _WIDE, 126, _has_zbb),
    convolution.Convolution("conv_s8_4x2_zbb_compact", _COMPACT, 126, _has_zbb),
    winograd.Winograd("conv_s8_16x4_zbb_winograd", _WINOGRAD, _multiplies),
    depthwise.Depthwise("dwconv_s8_6x1_zbb", _DEPTHWISE, 123, _has_zbb),
    dense.Dense("dense_s8_1x8_zbb", _DENSE, 121, _has_zbb),
    *(rectified.Rectified(record) for record in OPERATORS if record.op in rectified.OPERATORS),
)
