"""The kernels for CPUs with wide vectors."""

from __future__ import annotations

from microtir.kernels.common.kernel import Kernel
from microtir.kernels.x86_avx2.add import Add8
from microtir.kernels.x86_avx2.convolution import Dense, Gemm
from microtir.kernels.x86_avx2.depthwise import Depthwise
from microtir.kernels.x86_avx2.pooling import GlobalAverage

KERNELS: tuple[Kernel, ...] = (
    Gemm("conv_s8_6x8_avx2", by_window=False),
    Gemm("conv_s8_6x8_avx2_windows", by_window=True),
    Depthwise("dwconv_s8_1x16_avx2", by_window=False),
    Depthwise("dwconv_s8_1x16_avx2_windows", by_window=True),
    Dense(),
    GlobalAverage(),
    Add8(),
)
