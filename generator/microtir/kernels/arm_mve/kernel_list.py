"""The kernels for Arm cores with Helium."""

from __future__ import annotations

from microtir.config import Feature
from microtir.dtype import DType
from microtir.kernels.arm_mve import (
    convolution,
    copying,
    dense,
    depthwise,
    lstm,
    matmul,
    moves,
    pooling,
    reductions,
    svdf,
)
from microtir.kernels.arm_mve.bilinear import BilinearVectors
from microtir.kernels.arm_mve.depthwise_floats import DepthwiseFloats
from microtir.kernels.arm_mve.elementwise import ArithmeticVectors, ElementwiseVectors
from microtir.kernels.arm_mve.float_blocks import FloatConvolution, FloatDense, FloatMatmul
from microtir.kernels.arm_mve.float_edges import DequantizeVectors, QuantizeVectors
from microtir.kernels.arm_mve.matmul_s16 import MatmulVectors
from microtir.kernels.arm_mve.normalise import NormaliseVectors
from microtir.kernels.common import kernel, pool_runs
from microtir.kernels.common.frames import Frames
from microtir.kernels.common.move_rows import MOVED, MoveRows
from microtir.kernels.common.powers import Powers
from microtir.kernels.common.transposed import Transposed

_FLOATS = FloatConvolution("conv_f32_4x4_mve")

KERNELS: tuple[kernel.Kernel, ...] = (
    convolution.Gemm("conv_s8_2x4_mve", DType.INT8),
    convolution.Gemm("conv_s16_2x4_mve", DType.INT16),
    convolution.Gemm("conv_s16_2x4_mve_wide", DType.INT16, wide=True),
    Frames("frames_conv_s8_2x4_mve", convolution.Gemm("conv_s8_2x4_mve", DType.INT8), DType.INT8),
    Transposed("tconv_s8_2x4_mve", convolution.Gemm("conv_s8_2x4_mve", DType.INT8), DType.INT8),
    Transposed(
        "tconv_s16_2x4_mve",
        convolution.Gemm("conv_s16_2x4_mve", DType.INT16),
        DType.INT16,
        DType.INT16,
    ),
    depthwise.Depthwise("dwconv_s8_1x16_mve", DType.INT8),
    depthwise.Depthwise("dwconv_s8_1x16_mve_turned", DType.INT8, turns=True),
    depthwise.Depthwise("dwconv_s16_1x8_mve", DType.INT16),
    depthwise.Depthwise("dwconv_s16_1x8_mve_turned", DType.INT16, turns=True),
    depthwise.Depthwise("dwconv_s16_1x8_mve_wide", DType.INT16, wide=True),
    dense.Dense("dense_s8_2x4_mve", DType.INT8),
    dense.Dense("dense_s16_2x4_mve", DType.INT16),
    dense.Dense("dense_s16_2x4_mve_wide", DType.INT16, wide=True),
    matmul.Matmul(),
    MatmulVectors(),
    lstm.Recurrent("lstm_s8_1x4_mve", DType.INT8),
    lstm.Recurrent("lstm_s16_1x4_mve", DType.INT16),
    svdf.Filters(),
    pool_runs.PoolRowsByRuns("pool_s8_1x16_mve_sums", pooling.VECTORS),
    pool_runs.PoolByRuns("pool_s8_1x16_mve", pooling.VECTORS),
    pooling.PoolVectors(),
    BilinearVectors(),
    ElementwiseVectors(),
    ArithmeticVectors(),
    moves.MovesByVectors(),
    reductions.ReductionsByVectors(),
    Powers("softmax_s8_1x4_mve", Feature.MVE, "kernels/mve", (84, 247)),
    NormaliseVectors(),
    _FLOATS,
    Transposed("tconv_f32_4x4_mve", _FLOATS, DType.FLOAT32, DType.FLOAT32),
    FloatDense("dense_f32_1x24_mve"),
    FloatMatmul("matmul_f32_4x4_mve"),
    DepthwiseFloats(),
    QuantizeVectors(),
    DequantizeVectors(),
    *(MoveRows("copy_s8_1x16_mve_rows", op, Feature.MVE, copying.copy, 16) for op in MOVED),
)
