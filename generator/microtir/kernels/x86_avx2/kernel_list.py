"""The kernels for CPUs with wide vectors."""

from __future__ import annotations

from microtir.kernels.common.kernel import Kernel
from microtir.kernels.x86_avx2.add import Add8
from microtir.kernels.x86_avx2.convolution import Dense, Gemm, GemmByWindow
from microtir.kernels.x86_avx2.depthwise import Depthwise, DepthwiseByWindow
from microtir.kernels.x86_avx2.pooling import GlobalAverage

KERNELS: tuple[Kernel, ...] = (
    Gemm(),
    GemmByWindow(),
    Depthwise(),
    DepthwiseByWindow(),
    Dense(),
    GlobalAverage(),
    Add8(),
)
