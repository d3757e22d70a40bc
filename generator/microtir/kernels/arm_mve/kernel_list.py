"""The kernels for Arm cores with Helium."""

from __future__ import annotations

from microtir.config import Feature
from microtir.dtype import DType
from microtir.kernels.arm_mve.add import Add4
from microtir.kernels.arm_mve.convolution import Gemm
from microtir.kernels.arm_mve.copying import copy
from microtir.kernels.arm_mve.dense import Dense
from microtir.kernels.arm_mve.depthwise import Depthwise
from microtir.kernels.arm_mve.pooling import VECTORS
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.move_rows import MOVED, MoveRows
from microtir.kernels.common.pool_runs import PoolByRuns, PoolRowsByRuns

KERNELS: tuple[Kernel, ...] = (
    Gemm("conv_s8_2x4_mve", DType.INT8),
    Gemm("conv_s16_2x4_mve", DType.INT16),
    Gemm("conv_s16_2x4_mve_wide", DType.INT16, wide=True),
    Depthwise("dwconv_s8_1x16_mve", DType.INT8),
    Depthwise("dwconv_s16_1x8_mve", DType.INT16),
    Depthwise("dwconv_s16_1x8_mve_wide", DType.INT16, wide=True),
    Dense("dense_s8_2x4_mve", DType.INT8),
    Dense("dense_s16_2x4_mve", DType.INT16),
    Dense("dense_s16_2x4_mve_wide", DType.INT16, wide=True),
    PoolRowsByRuns("pool_s8_1x16_mve_sums", VECTORS),
    PoolByRuns("pool_s8_1x16_mve", VECTORS),
    Add4(),
    *(MoveRows("copy_s8_1x16_mve_rows", op, Feature.MVE, copy, 16) for op in MOVED),
)
