"""The kernels for Arm cores with Helium."""

from __future__ import annotations

from microtir.kernels.arm_mve.add import Add4
from microtir.kernels.arm_mve.convolution import Gemm
from microtir.kernels.arm_mve.dense import Dense
from microtir.kernels.arm_mve.depthwise import Depthwise
from microtir.kernels.arm_mve.pooling import VECTORS
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.pool_runs import PoolByRuns, PoolRowsByRuns

KERNELS: tuple[Kernel, ...] = (
    Gemm(),
    Depthwise(),
    Dense(),
    PoolRowsByRuns("pool_s8_1x16_mve_sums", VECTORS),
    PoolByRuns("pool_s8_1x16_mve", VECTORS),
    Add4(),
)
