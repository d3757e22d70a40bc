"""The kernels for Arm cores with the DSP extension."""

from __future__ import annotations

from microtir.config import Feature
from microtir.dtype import DType
from microtir.kernels.arm_dsp import dense, depthwise_rows, depthwise_sums, gemm, narrow, windows
from microtir.kernels.arm_dsp.bilinear import BilinearWords
from microtir.kernels.arm_dsp.block_dense import BlockDenseRounded
from microtir.kernels.arm_dsp.convolution_s16 import Convolution16
from microtir.kernels.arm_dsp.copying import CopyWords, copy
from microtir.kernels.arm_dsp.dense_nibbles import DenseNibbles
from microtir.kernels.arm_dsp.dense_s16 import Dense16
from microtir.kernels.arm_dsp.depthwise import Depthwise
from microtir.kernels.arm_dsp.depthwise_s16 import Depthwise16
from microtir.kernels.arm_dsp.elementwise import (
    ArithmeticWords,
    ElementwiseFloats,
    ElementwiseWords,
    SigmoidWords,
)
from microtir.kernels.arm_dsp.gemm_bytes import GemmBytes
from microtir.kernels.arm_dsp.gemm_nibbles import GemmNibbles
from microtir.kernels.arm_dsp.lstm import Recurrent
from microtir.kernels.arm_dsp.matmul import Matmul
from microtir.kernels.arm_dsp.matmul_s16 import Matmul16
from microtir.kernels.arm_dsp.moves import MovesByWords
from microtir.kernels.arm_dsp.normalise import NormaliseWords
from microtir.kernels.arm_dsp.plane_windows import PlaneWindows
from microtir.kernels.arm_dsp.planes import DepthwisePlanar, DepthwisePlanes
from microtir.kernels.arm_dsp.pool_floats import PoolFloats
from microtir.kernels.arm_dsp.pooling import WORDS, PoolWords
from microtir.kernels.arm_dsp.recurrent import Filters, Recurrent16
from microtir.kernels.arm_dsp.reductions import ReductionsByWords
from microtir.kernels.arm_dsp.winograd import Winograd
from microtir.kernels.arm_dsp.winograd_bands import WinogradBands
from microtir.kernels.arm_dsp.winograd_rows import WinogradRows
from microtir.kernels.common import kernel, micro_kernel, pool_runs
from microtir.kernels.common.dense_pixels import DensePixels
from microtir.kernels.common.float_edges import DequantizeFloats, QuantizeFloats
from microtir.kernels.common.frames import Frames
from microtir.kernels.common.move_rows import MOVED, MoveRows
from microtir.kernels.common.powers import Powers
from microtir.kernels.common.transposed import Transposed
from microtir.plan.ir import LayoutKind

_LAYOUTS = (LayoutKind.NHWC, LayoutKind.PLANES16, LayoutKind.PLANES8)
_FORMS = (
    ("conv_s8_2x4_dsp", micro_kernel.FAST),
    ("conv_s8_2x4_dsp_compact", micro_kernel.COMPACT),
    ("conv_s8_2x4_dsp_single_loads", micro_kernel.FAST_SINGLE_LOADS),
    ("conv_s8_2x4_dsp_compact_single_loads", micro_kernel.COMPACT_SINGLE_LOADS),
)

KERNELS: tuple[kernel.Kernel, ...] = (
    *(gemm.Gemm(name, unroll, kind) for kind in _LAYOUTS for name, unroll in _FORMS),
    *(
        Transposed(f"t{name}", gemm.Gemm(name, unroll, LayoutKind.NHWC), DType.INT16)
        for name, unroll in _FORMS[:2]
    ),
    Frames("frames_conv_s8_2x4_dsp", gemm.Gemm(*_FORMS[0], LayoutKind.NHWC), DType.INT16),
    Frames("frames_conv_s8_4x2_dsp", windows.GemmWindows(LayoutKind.NHWC), DType.INT16),
    Transposed("tconv_s8_4x2_dsp", windows.GemmWindows(LayoutKind.NHWC), DType.INT16),
    *(
        DensePixels(
            name.replace("conv", "dense"), gemm.Gemm(name, unroll, LayoutKind.NHWC), DType.INT16
        )
        for name, unroll in _FORMS[:2]
    ),
    DensePixels("dense_s8_4x2_dsp", windows.GemmWindows(LayoutKind.NHWC), DType.INT16),
    GemmNibbles("conv_s4_2x4_dsp"),
    DensePixels("dense_s4_2x4_dsp", GemmNibbles("conv_s4_2x4_dsp"), DType.INT16),
    GemmBytes("conv_s8_2x4_dsp_bytes", 2),
    GemmBytes("conv_s8_1x8_dsp_bytes", 1),
    *map(narrow.GemmNarrow, _LAYOUTS),
    *map(windows.GemmWindows, _LAYOUTS),
    Winograd(),
    WinogradBands("conv_s8_16x2_dsp_winograd_bands_2", 2),
    WinogradBands("conv_s8_16x2_dsp_winograd_bands_4", 4),
    WinogradRows("conv_s8_8x2_dsp_winograd", 4),
    WinogradRows("conv_s8_4x4_dsp_winograd", 2),
    Depthwise("dwconv_s8_2x4_dsp", 2, 141),
    Depthwise("dwconv_s8_1x4_dsp", 1, 150),
    depthwise_rows.DepthwiseRows(),
    depthwise_sums.DepthwiseSums(),
    DepthwisePlanes(),
    DepthwisePlanar(LayoutKind.PLANES16, DType.INT16),
    DepthwisePlanar(LayoutKind.PLANES8, DType.INT8),
    PlaneWindows("dwconv_s8_4x1_dsp_windows", turns=False),
    PlaneWindows("dwconv_s8_4x1_dsp_turned", turns=True),
    dense.Dense(),
    DenseNibbles(),
    BlockDenseRounded(),
    BilinearWords(),
    Matmul(),
    Matmul16(),
    Convolution16("conv_s16_2x4_dsp", 125),
    Convolution16("conv_s16_2x2_dsp_wide", 125, wide=True),
    Transposed(
        "tconv_s16_2x4_dsp", Convolution16("conv_s16_2x4_dsp", 125), DType.INT16, DType.INT16
    ),
    Depthwise16("dwconv_s16_4x2_dsp", 125),
    Depthwise16("dwconv_s16_2x2_dsp_wide", 125, wide=True),
    Dense16("dense_s16_1x8_dsp", 125),
    Dense16("dense_s16_1x4_dsp_wide", 125, wide=True),
    Recurrent(),
    Recurrent16(),
    Filters(),
    pool_runs.PoolRowsByRuns("pool_s8_1x4_dsp_sums", WORDS),
    pool_runs.PoolByRuns("pool_s8_1x4_dsp", WORDS),
    PoolWords(),
    PoolFloats(),
    ElementwiseWords(),
    ElementwiseFloats(),
    ArithmeticWords(),
    SigmoidWords(),
    ReductionsByWords(),
    QuantizeFloats(),
    DequantizeFloats(),
    Powers("softmax_s8_1x4_dsp", Feature.DSP, "kernels", (74, 229)),
    NormaliseWords(),
    CopyWords(),
    MovesByWords(),
    *(MoveRows("copy_s8_1x4_dsp_rows", op, Feature.DSP, copy, 4) for op in MOVED),
)
