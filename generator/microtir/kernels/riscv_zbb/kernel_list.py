"""The kernels for RISC-V with Zbb.

Compilers make MIN and MAX of the clamps by themselves.  What is left to say is that the outputs of
a block are then straight code, and that a float, where there is no FPU, is clamped as an integer.
"""

from __future__ import annotations

from dataclasses import replace

from microtir.config import Feature
from microtir.config.target import Target
from microtir.kernels.c_blocks import convolution, dense, depthwise
from microtir.kernels.c_blocks.kernel_list import Convolution, Dense, Depthwise
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.riscv_zbb import rectified
from microtir.kernels.riscv_zbb.rectified import Rectified
from microtir.operators import OPERATORS

_WIDE = replace(convolution.WIDE, is_straight=True)
_COMPACT = replace(convolution.COMPACT, is_straight=True)
_DEPTHWISE = replace(depthwise.WIDE, is_straight=True)
_DENSE = dense.Form(is_straight=True)


def _has_zbb(target: Target) -> bool:
    return target.has(Feature.ZBB)


KERNELS: tuple[Kernel, ...] = (
    Convolution("conv_s8_4x4_zbb", _WIDE, 126, _has_zbb),
    Convolution("conv_s8_4x2_zbb_compact", _COMPACT, 126, _has_zbb),
    Depthwise("dwconv_s8_6x1_zbb", _DEPTHWISE, 123, _has_zbb),
    Dense("dense_s8_1x8_zbb", 121, _has_zbb, form=_DENSE),
    *(Rectified(record) for record in OPERATORS if record.op in rectified.OPERATORS),
)
