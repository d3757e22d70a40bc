"""The kernels for CPUs with wide vectors."""

from __future__ import annotations

from microtir.kernels.common.kernel import Kernel
from microtir.kernels.x86_avx2 import add, convolution, depthwise, pooling

KERNELS: tuple[Kernel, ...] = (
    convolution.Gemm("conv_s8_6x8_avx2", by_window=False),
    convolution.Gemm("conv_s8_6x8_avx2_windows", by_window=True),
    depthwise.Depthwise("dwconv_s8_1x16_avx2", by_window=False),
    depthwise.Depthwise("dwconv_s8_1x16_avx2_windows", by_window=True),
    convolution.Dense(),
    pooling.GlobalAverage(),
    add.Add8(),
)
