"""The kernels for CPUs with wide vectors."""

from __future__ import annotations

from microtir.kernels.common.kernel import Kernel
from microtir.kernels.x86_avx2.add import Add8
from microtir.kernels.x86_avx2.convolution import Dense, Gemm
from microtir.kernels.x86_avx2.depthwise import Depthwise
from microtir.kernels.x86_avx2.pooling import GlobalAverage

KERNELS: tuple[Kernel, ...] = (
    Gemm("gemm_panels", by_window=False),
    Gemm("gemm_panels_windows", by_window=True),
    Depthwise("depthwise_lanes", by_window=False),
    Depthwise("depthwise_lanes_windows", by_window=True),
    Dense(),
    GlobalAverage(),
    Add8(),
)
