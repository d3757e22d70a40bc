"""A kernel that cannot compute an operator says why."""

from __future__ import annotations

import numpy as np
import pytest

from microtir.config.target import Target
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.kernels.table import kernels_of, refusals_of
from microtir.operators.arithmetic.definition import Add
from microtir.operators.common.attributes import Activation
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.matmul.definition import BatchMatmul
from microtir.operators.normalization.definition import L2Normalize
from microtir.operators.pooling.definition import MaxPool2D
from microtir.operators.resize.definition import ResizeBilinear
from microtir.plan.ir import Refusal
from tests.support.graphs import constant, node, per_channel, quant, tensor
from tests.support.operator_cases import generate, operator_dtypes

M4, M55, X86 = (Target(f"c -mcpu={cpu}") for cpu in ("cortex-m4", "cortex-m55", "x86-64"))


def linear(
    op: Operator, shape: tuple[int, ...], weights: tuple[int, ...], *, fill: int = 1,
    bias: int = 0, dtype: DType = DType.INT8,
) -> Node:  # fmt: skip
    """A layer over an image of 5 by 5, or a dense one, whose weights are all the same."""
    int8 = dtype is DType.INT8
    axis = 3 if isinstance(op, DepthwiseConv2D) else 0
    outputs = weights[axis]
    x = tensor("x", shape, dtype, quant(0.05, 3) if int8 else None)
    scales = per_channel([0.01] * outputs, axis) if int8 else None
    w = constant("w", np.full(weights, fill, dtype.value), scales)
    b = constant("b", np.full(outputs, bias, np.int32 if int8 else np.float32))
    result = (*shape[:-1], outputs)
    return node(op, (x, w, b), tensor("y", result, dtype, quant(1.0, 3) if int8 else None))


def pool(clamp: Activation) -> Node:
    """A maximum over an image."""
    x, y = (tensor(n, (1, 4, 4, 8), DType.INT8, quant(0.05, -128)) for n in "xy")
    return node(MaxPool2D((1, 1), activation=clamp), (x,), y)


def add(shape: tuple[int, ...]) -> Node:
    """A sum of an activation and one that may be broadcast."""
    x, y = (tensor(n, (1, 4, 4, 8), DType.INT8, quant(0.05)) for n in "xy")
    return node(Add(), (x, tensor("z", shape, DType.INT8, quant(0.04))), y)


def long_rows() -> Node:
    """Two rows of 5000 that are divided by their lengths."""
    x, y = (tensor(n, (2, 5000), DType.INT8, quant(0.05)) for n in "xy")
    return node(L2Normalize(), (x,), y)


def product(depth: int, dtype: DType = DType.INT8, rows: int = 4) -> Node:
    """Rows times four columns, of which both lie as rows."""
    x, y = (tensor(n, (k, depth), dtype, quant(0.05)) for n, k in (("x", rows), ("y", 4)))
    scale = 0.04 if dtype is DType.INT8 else 8.0
    return node(BatchMatmul(adj_y=True), (x, y), tensor("z", (rows, 4), dtype, quant(scale)))


def rows_beside() -> Node:
    """Four rows of int16 that lie beside each other, times four columns."""
    x, y = (tensor(n, (8, 4), DType.INT16, quant(0.05)) for n in "xy")
    return node(BatchMatmul(adj_x=True), (x, y), tensor("z", (4, 4), DType.INT16, quant(1.0)))


def image(times: int, channels: int = 8) -> Node:
    """An image of uint8 that becomes larger."""
    shapes = zip("xy", (1, times), strict=True)
    x, y = (tensor(n, (1, 4 * k, 4, channels), DType.UINT8, quant(0.1)) for n, k in shapes)
    return node(ResizeBilinear(), (x,), y)


IMAGE, CONV, CHANNELWISE = (1, 5, 5, 8), (6, 1, 1, 8), (1, 1, 1, 8)
CASES = {
    "a float for int8": (linear(Conv2D(), IMAGE, CONV, dtype=DType.FLOAT32), M4, "conv_s8_2x4_dsp",
                         Refusal.TYPES),
    "two images": (linear(DepthwiseConv2D(), (2, 5, 5, 8), CHANNELWISE), M4,
                   "dwconv_s8_2x4_dsp", Refusal.IMAGES),
    "a multiplier": (linear(DepthwiseConv2D(depth_multiplier=18), IMAGE, (1, 1, 1, 144)), M55,
                     "dwconv_s8_1x16_mve", Refusal.MULTIPLIER),
    "channels apart": (linear(DepthwiseConv2D(), IMAGE, CHANNELWISE), M4, "conv_s8_2x4_dsp",
                       Refusal.MIXES_CHANNELS),
    "one output": (linear(Conv2D(), IMAGE, (1, 1, 1, 8)), M4, "conv_s8_2x4_dsp",
                   Refusal.FEW_CHANNELS),
    "weights of -128": (linear(Conv2D(), IMAGE, CONV, fill=-128), M4, "conv_s8_2x4_dsp",
                        Refusal.FORM),
    "sums of 33 bits": (linear(Conv2D(), IMAGE, CONV, bias=2**31 - 1), M4, "conv_s8_2x4_dsp",
                        Refusal.SUMS),
    "odd inputs": (linear(FullyConnected(), (1, 7), (4, 7)), M4, "dense_s8_1x8_dsp",
                   Refusal.SIZES),
    "a row of whole words": (linear(FullyConnected(), (1, 8), (4, 8)), M4, "dense_s8_2x4_dsp",
                             Refusal.SINGLE),
    "rows in rows": (linear(FullyConnected(), (1, 5, 5, 8), (6, 8)), X86, "dense_s8_6x8_avx2",
                     Refusal.ROWS),
    "a clamp": (pool(Activation.RELU6), M55, "pool_s8_1x16_mve", Refusal.CLAMP),
    "lines that loads do not reach": (product(1400), M4, "matmul_s8_2x4_dsp", Refusal.SIZES),
    "sums of 31 bits": (product(17_000), M4, "matmul_s8_2x4_dsp", Refusal.FORM),
    "columns that groups do not reach": (product(1400), M55, "matmul_s8_2x4_mve", Refusal.SIZES),
    "lines of int16 that loads do not reach": (product(1400, DType.INT16), M55,
                                               "matmul_s16_2x2_mve", Refusal.SIZES),
    "one row of int16": (product(8, DType.INT16, 1), M55, "matmul_s16_2x2_mve", Refusal.SHAPES),
    "bytes by vectors of int16": (product(8), M55, "matmul_s16_2x2_mve", Refusal.TYPES),
    "rows beside each other": (rows_beside(), M4, "matmul_s16_2x2_dsp", Refusal.SHAPES),
    "a memory of bytes": (generate("SVDF", 300, "int8").graph().nodes[0], M55, "svdf_s8_1x4_mve",
                          Refusal.TYPES),
    "features that become larger": (generate("SVDF", 303, "int8").graph().nodes[0], M55,
                                    "svdf_s8_1x4_mve", Refusal.FORM),
    "rows of floats": (generate("L2_NORMALIZATION", 0, "float32").graph().nodes[0], M55,
                       "l2norm_s8_1x8_mve", Refusal.TYPES),
    "long rows": (long_rows(), M4, "l2norm_s8_1x4_dsp", Refusal.SIZES),
    "thirds of uint8": (image(3), M55, "bilinear_s8_1x8_mve", Refusal.FORM),
    "thirds of words": (image(3), M4, "bilinear_s8_1x4_dsp", Refusal.FORM),
    "pixels of two bytes": (image(2, 2), M4, "bilinear_s8_1x4_dsp", Refusal.SIZES),
    "a broadcast": (add((1, 1, 1, 8)), X86, "add_s8_1x8_avx2", Refusal.SHAPES),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_reason(case: str) -> None:
    """What metadata print of a kernel that is not offered."""
    layer, target, kernel, reason = CASES[case]
    assert dict(refusals_of(layer, target))[kernel] is reason


@pytest.mark.parametrize("target", [M4, M55, X86], ids=str)
def test_each_kernel_is_offered_or_refused(target: Target) -> None:
    """Never both, over operators of all kinds."""
    for operator, dtype in operator_dtypes():
        for layer in generate(operator, 0, dtype).graph().nodes:
            offered = {k.name for k in kernels_of(layer, target)}
            refused = {kernel for kernel, _ in refusals_of(layer, target)}
            assert offered and not offered & refused
