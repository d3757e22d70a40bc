"""The kernels for Arm cores with Helium."""

from __future__ import annotations

from microtir.kernels.arm_mve.add import Add4
from microtir.kernels.arm_mve.convolution import Gemm
from microtir.kernels.arm_mve.dense import Dense
from microtir.kernels.arm_mve.depthwise import Depthwise
from microtir.kernels.arm_mve.pooling import PoolRowsVectors, PoolVectors
from microtir.kernels.common.kernel import Kernel

KERNELS: tuple[Kernel, ...] = (
    Gemm(),
    Depthwise(),
    Dense(),
    PoolRowsVectors(),
    PoolVectors(),
    Add4(),
)
