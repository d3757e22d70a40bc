"""The code that candidates state is what a compiler makes of their kernels, roughly.

Stated is what a layer adds to the program beyond a direct kernel. Measured is how much larger the
object file of the layer alone is than that of the direct kernel; kernels that layers share are
stated as a part, so that they may turn out larger where one layer uses them.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Target
from microtir.config.enums import Optimize
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.kernels import candidates
from microtir.module.ir_module import IRModule
from microtir.operators.arithmetic.definition import Add, Maximum, Mul
from microtir.operators.common.attributes import Activation, Padding2D
from microtir.operators.conversion.definition import Dequantize, Quantize
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.matmul.definition import BatchMatmul
from microtir.operators.pooling.definition import AveragePool2D
from microtir.operators.reduction.definition import Mean
from microtir.operators.softmax.definition import SOFTMAX_OF_INT8, Softmax
from microtir.operators.transposed_convolution.definition import TransposeConv
from microtir.plan.measured import Cost, Key, Measured, signature
from tests.support.block_dense_cases import block_dense
from tests.support.elementwise_cases import sigmoid
from tests.support.graphs import constant, graph, node, per_channel, quant, tensor
from tests.support.resize_cases import resized
from tests.support.svdf_cases import remembering

SAME = Padding2D(1, 1, 1, 1)
IMAGE = (1, 8, 8, 32)
RISCV = ("-march=rv32imc", "-misa-spec=2.2", "-mabi=ilp32", "--specs=picolibc.specs")
COMPILERS: Mapping[str, tuple[str, ...]] = {
    "cortex-m4": ("arm-none-eabi-", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard"),
    "cortex-m55": ("arm-none-eabi-", "-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"),
    "cortex-m0": ("arm-none-eabi-", "-mcpu=cortex-m0", "-mthumb"),
    "cortex-m3": ("arm-none-eabi-", "-mcpu=cortex-m3", "-mthumb"),
    "rv32imc_zbb": ("riscv64-unknown-elf-", "-march=rv32imc_zbb", *RISCV[1:]),
    "rv32imc": ("riscv64-unknown-elf-", *RISCV),
    "x86-64": ("", "-mavx2"),
}


def linear(op: Operator, shape: tuple[int, ...], weights: tuple[int, ...]) -> Node:
    """A layer with random weights, of a stride of 1."""
    axis = 3 if isinstance(op, DepthwiseConv2D) else 0
    x = tensor("x", shape, DType.INT8, quant(0.05, 3))
    data = np.random.default_rng(0).integers(-50, 50, weights).astype(np.int8)
    w = constant("w", data, per_channel([0.01] * weights[axis], axis))
    result = (*shape[:-1], weights[axis])
    return node(op, (x, w), tensor("y", result, DType.INT8, quant(1.0, 3)))


def addition() -> Node:
    """Of two images."""
    a, b = (tensor(n, IMAGE, DType.INT8, quant(s, 3)) for n, s in (("a", 0.05), ("b", 0.03)))
    return node(Add(), (a, b), tensor("y", IMAGE, DType.INT8, quant(0.06, 3)))


def mean() -> Node:
    """Return a MEAN over height and width."""
    x = tensor("x", (1, 8, 8, 30), DType.INT8, quant(0.5, 3))
    y = tensor("y", (1, 30), DType.INT8, quant(0.7, -5))
    return node(Mean((1, 2)), [x], y)


def extreme() -> Node:
    """Return a MAXIMUM of two images."""
    a, b, y = (tensor(n, IMAGE, DType.INT8, quant(0.05, 3)) for n in "aby")
    return node(Maximum(), (a, b), y)


def edge(op: Operator) -> Node:
    """Return what makes an image of floats one of int8, or the other way round."""
    floats, ints = tensor("f", IMAGE, DType.FLOAT32), tensor("i", IMAGE, DType.INT8, quant(0.05, 3))
    x, y = (floats, ints) if isinstance(op, Quantize) else (ints, floats)
    return node(op, (x,), y)


def softmax() -> Node:
    """Return a SOFTMAX of 12 rows."""
    x = tensor("x", (12, 30), DType.INT8, quant(0.1, 3))
    return node(Softmax(), [x], tensor("y", (12, 30), DType.INT8, SOFTMAX_OF_INT8))


def product_of_floats() -> Node:
    """Return a MUL of two images with a RELU6."""
    a, b, y = (tensor(n, IMAGE, DType.FLOAT32) for n in "aby")
    return node(Mul(Activation.RELU6), (a, b), y)


def scaled() -> Node:
    """Return a MUL of an image and a number for each channel."""
    a, y = (tensor(n, IMAGE, DType.INT8, quant(0.05, 3)) for n in "ay")
    return node(Mul(), (a, tensor("b", IMAGE[-1:], DType.INT8, quant(0.02, 3))), y)


def average() -> Node:
    """Of a whole image."""
    x, y = (
        tensor(n, s, DType.INT8, quant(0.05, 3)) for n, s in (("x", IMAGE), ("y", (1, 1, 1, 32)))
    )
    return node(AveragePool2D((8, 8)), (x,), y)


def product(dtype: DType = DType.INT8, zero: int = 3) -> Node:
    """Of two stacks of matrices."""
    x, w = (tensor(n, (2, 12, 16), dtype, quant(0.05, zero)) for n in "xw")
    result = tensor("y", (2, 12, 12), dtype, quant(1.0, zero))
    return node(BatchMatmul(adj_y=True), (x, w), result)


def in_int16(layer: Node) -> Node:
    """The same layer with data of int16."""
    x, y = (
        replace(t, type=replace(t.type, dtype=DType.INT16, quantization=quant(0.05, 0)))
        for t in (layer.inputs[0], layer.output)
    )
    return replace(layer, inputs=(x, *layer.inputs[1:]), outputs=(y,))


POINTWISE = linear(Conv2D(), IMAGE, (48, 1, 1, 32))
SQUARE = linear(Conv2D(padding=SAME), IMAGE, (32, 3, 3, 32))
DEPTHWISE = linear(DepthwiseConv2D(padding=SAME), IMAGE, (1, 3, 3, 32))
MULTIPLIED = linear(DepthwiseConv2D(padding=SAME, depth_multiplier=4), IMAGE, (1, 3, 3, 128))
COLUMN = linear(DepthwiseConv2D(padding=Padding2D(4, 4)), (1, 40, 1, 32), (1, 9, 1, 32))
GROUPED = linear(Conv2D(padding=SAME), IMAGE, (32, 3, 3, 8))
TRANSPOSED = linear(TransposeConv((2, 2)), IMAGE, (16, 3, 3, 32))
DENSE = linear(FullyConnected(), (1, 128), (64, 128))
LINES = linear(FullyConnected(), (18, 30), (10, 30))


def in_f32(layer: Node) -> Node:
    """The same layer with floats."""
    x, w, y = (
        replace(t, type=replace(t.type, dtype=DType.FLOAT32, quantization=None))
        for t in (*layer.inputs[:2], layer.output)
    )
    assert w.data is not None
    weights = replace(w, data=w.data.astype(np.float32))
    return replace(layer, inputs=(x, weights), outputs=(y,))


def in_four_bits(layer: Node) -> Node:
    """The same layer with weights of four bits."""
    x, w = layer.inputs
    assert w.data is not None
    return replace(layer, inputs=(x, replace(w, data=w.data >> 4)))


SQUARE16, POINTWISE16 = map(in_int16, (SQUARE, POINTWISE))
GROUPED16, TRANSPOSED16 = map(in_int16, (GROUPED, TRANSPOSED))
DEPTHWISE16, DENSE16 = map(in_int16, (DEPTHWISE, DENSE))
# Whose products alone may leave 32 bits.
DEEP16 = in_int16(linear(Conv2D(padding=SAME), (1, 7, 7, 320), (8, 3, 3, 320)))
LONG16 = in_int16(linear(FullyConnected(), (1, 3000), (16, 3000)))
CASES = [
    ("cortex-m4", "conv_s8_2x4_dsp", SQUARE),
    ("cortex-m4", "conv_s8_16x2_dsp_winograd", SQUARE),
    ("cortex-m4", "conv_s8_16x2_dsp_winograd_bands_4", SQUARE),
    ("cortex-m4", "conv_s8_8x2_dsp_winograd", SQUARE),
    ("cortex-m4", "conv_s8_4x4_dsp_winograd", SQUARE),
    ("cortex-m4", "conv_s8_2x4_dsp", GROUPED),
    ("cortex-m4", "tconv_s8_2x4_dsp", TRANSPOSED),
    ("cortex-m4", "tconv_s8_2x4_dsp_compact", TRANSPOSED),
    ("cortex-m4", "tconv_s8_4x2_dsp", TRANSPOSED),
    ("cortex-m4", "dwconv_s8_2x4_dsp", DEPTHWISE),
    ("cortex-m4", "dwconv_s8_4x1_dsp_windows", MULTIPLIED),
    ("cortex-m4", "dwconv_s8_4x1_dsp_turned", COLUMN),
    ("cortex-m55", "dwconv_s8_1x16_mve_turned", COLUMN),
    ("cortex-m4", "dwconv_s8_1x4_dsp", DEPTHWISE),
    ("cortex-m4", "dwconv_s8_4x1_dsp", DEPTHWISE),
    ("cortex-m4", "dense_s8_1x8_dsp", DENSE),
    ("cortex-m4", "dense_s4_1x8_dsp", in_four_bits(DENSE)),
    ("cortex-m4", "conv_s4_2x4_dsp", in_four_bits(SQUARE)),
    ("cortex-m4", "dense_s4_2x4_dsp", in_four_bits(LINES)),
    ("cortex-m4", "dense_s8_2x4_dsp", LINES),
    ("cortex-m4", "dense_s8_4x2_dsp", LINES),
    ("cortex-m4", "matmul_s8_2x4_dsp", product()),
    ("cortex-m55", "matmul_s8_2x4_mve", product()),
    ("cortex-m55", "bilinear_s8_1x8_mve", resized(2).graph.nodes[0]),
    ("cortex-m4", "bilinear_s8_1x4_dsp", resized(10).graph.nodes[0]),
    ("cortex-m55", "svdf_s8_1x4_mve", remembering(3).graph.nodes[0]),
    ("cortex-m4", "matmul_s16_2x2_dsp", product(DType.INT16, 0)),
    ("cortex-m55", "matmul_s16_2x2_mve", product(DType.INT16, 0)),
    ("cortex-m4", "pool_s8_1x4_dsp", average()),
    ("cortex-m4", "reduce_s8_1x4_dsp", mean()),
    ("cortex-m4", "lanes_s8_1x4_dsp", extreme()),
    ("cortex-m4", "sigmoid_s16_1x2_dsp", sigmoid(4).graph.nodes[0]),
    ("cortex-m4", "quantize_f32_1x4_dsp", edge(Quantize())),
    ("cortex-m4", "dequantize_f32_1x4_dsp", edge(Dequantize())),
    ("cortex-m4", "softmax_s8_1x4_dsp", softmax()),
    ("cortex-m4", "blocks_s8_1x4_dsp", block_dense(6).graph.nodes[0]),
    ("cortex-m4", "blocks_s8_1x4_dsp", block_dense(7).graph.nodes[0]),
    ("cortex-m4", "lanes_f32_1x8_dsp", product_of_floats()),
    ("cortex-m4", "arithmetic_s8_1x1_dsp", scaled()),
    ("cortex-m55", "conv_s8_2x4_mve", POINTWISE),
    ("cortex-m55", "conv_s8_2x4_mve", SQUARE),
    ("cortex-m55", "conv_s8_2x4_mve", GROUPED),
    ("cortex-m55", "tconv_s8_2x4_mve", TRANSPOSED),
    ("cortex-m55", "conv_s16_2x4_mve", POINTWISE16),
    ("cortex-m55", "conv_s16_2x4_mve", SQUARE16),
    ("cortex-m55", "conv_s16_2x4_mve_wide", SQUARE16),
    ("cortex-m55", "conv_s16_2x4_mve_wide", DEEP16),
    ("cortex-m55", "dense_s16_2x4_mve", DENSE16),
    ("cortex-m55", "dense_s16_2x4_mve_wide", DENSE16),
    ("cortex-m55", "dense_s16_2x4_mve_wide", LONG16),
    ("cortex-m55", "dwconv_s16_1x8_mve", DEPTHWISE16),
    ("cortex-m55", "dwconv_s16_1x8_mve_wide", DEPTHWISE16),
    ("cortex-m55", "dense_s8_2x4_mve", DENSE),
    ("cortex-m55", "dwconv_s8_1x16_mve", DEPTHWISE),
    ("cortex-m55", "pool_s8_1x16_mve", average()),
    ("cortex-m55", "reduce_s8_1x16_mve", mean()),
    ("cortex-m55", "lanes_s8_1x16_mve", extreme()),
    ("cortex-m55", "softmax_s8_1x4_mve", softmax()),
    ("cortex-m55", "arithmetic_s8_1x4_mve", scaled()),
    ("cortex-m55", "arithmetic_s8_1x4_mve", addition()),
    ("cortex-m55", "quantize_f32_1x4_mve", edge(Quantize())),
    ("cortex-m55", "dequantize_f32_1x4_mve", edge(Dequantize())),
    ("cortex-m55", "conv_f32_4x4_mve", in_f32(SQUARE)),
    ("cortex-m55", "dwconv_f32_6x4_mve", in_f32(DEPTHWISE)),
    ("cortex-m55", "dense_f32_1x24_mve", in_f32(DENSE)),
    ("cortex-m3", "conv_s8_4x2_c", SQUARE),
    ("cortex-m3", "conv_s8_4x2_c_compact", POINTWISE),
    ("cortex-m3", "conv_s8_16x2_c_winograd", SQUARE),
    ("cortex-m3", "dense_s8_1x8_c", DENSE),
    ("cortex-m3", "dwconv_s8_4x1_c", DEPTHWISE),
    ("cortex-m0", "conv_s8_16x1_c_winograd", SQUARE),
    ("cortex-m4", "conv_s16_2x4_dsp", SQUARE16),
    ("cortex-m4", "conv_s16_2x4_dsp", GROUPED16),
    ("cortex-m4", "tconv_s16_2x4_dsp", TRANSPOSED16),
    ("cortex-m55", "tconv_s16_2x4_mve", TRANSPOSED16),
    ("cortex-m4", "conv_s16_2x4_dsp", POINTWISE16),
    ("cortex-m4", "conv_s16_2x2_dsp_wide", SQUARE16),
    ("cortex-m4", "dwconv_s16_4x2_dsp", DEPTHWISE16),
    ("cortex-m4", "dwconv_s16_2x2_dsp_wide", DEPTHWISE16),
    ("cortex-m4", "dense_s16_1x8_dsp", DENSE16),
    ("cortex-m4", "dense_s16_1x4_dsp_wide", DENSE16),
    ("cortex-m3", "conv_s16_4x2_c", SQUARE16),
    ("cortex-m3", "dense_s16_1x8_c", DENSE16),
    ("cortex-m3", "dwconv_s16_4x1_c", DEPTHWISE16),
    ("rv32imc", "conv_s8_4x4_c", SQUARE),
    ("rv32imc", "conv_s8_16x4_c_winograd", SQUARE),
    ("rv32imc", "dwconv_s8_6x1_c", DEPTHWISE),
    ("rv32imc_zbb", "conv_s8_4x4_zbb", SQUARE),
    ("rv32imc_zbb", "conv_s8_4x2_zbb_compact", POINTWISE),
    ("rv32imc_zbb", "conv_s8_16x4_zbb_winograd", SQUARE),
    ("rv32imc_zbb", "dense_s8_1x8_zbb", DENSE),
    ("rv32imc_zbb", "dwconv_s8_6x1_zbb", DEPTHWISE),
    ("x86-64", "conv_s8_6x8_avx2", SQUARE),
    ("x86-64", "conv_s8_6x8_avx2_windows", SQUARE),
    ("x86-64", "dense_s8_6x8_avx2", DENSE),
    ("x86-64", "dwconv_s8_1x16_avx2", DEPTHWISE),
    ("x86-64", "dwconv_s8_1x16_avx2_windows", DEPTHWISE),
    ("x86-64", "pool_s8_1x8_avx2", average()),
    ("x86-64", "add_s8_1x8_avx2", addition()),
]
# Kernels that several layers of a model use are stated in parts.
SHARED = frozenset({
    "conv_s8_2x4_dsp", "conv_s4_2x4_dsp", "dense_s4_2x4_dsp", "conv_s8_6x8_avx2",
    "conv_s8_6x8_avx2_windows",
})  # fmt: skip


def config_for(cpu: str, kernel: str = "") -> CompilationConfig:
    """For speed, which takes what costs least; a kernel may be offered only where flash is limited.

    The limit is one that never matters.
    """
    target = Target(f"c -{'march' if cpu.startswith('rv') else 'mcpu'}={cpu}")
    config = CompilationConfig.from_target(target)
    config = config.with_(optimize=Optimize.SPEED, module_name="m")
    return config.with_(budget={"flash": 1 << 30}) if "_bands_" in kernel else config


@lru_cache
def compiled_bytes(cpu: str, kernel: str, layer: Node) -> int:
    """Code of the object file of one layer with a kernel, at -O2."""
    config = config_for(cpu, kernel)
    costs = {
        Key(signature(layer), c.kernel): Cost(*([0, 0] if c.kernel == kernel else [10**9] * 2))
        for c in candidates(layer, config)
    }
    prefix, *flags = COMPILERS[cpu]
    with TemporaryDirectory(prefix="microtir-code-") as name:
        folder = Path(name)
        records = folder / "records.json"
        text = Measured(str(config.primary_target()), costs).to_text()
        records.write_text(text, encoding="utf-8")
        module = IRModule(graph=graph((layer,), layer.activations, layer.outputs))
        artifact = microtir.build(module, config.with_(tuning_records=str(records)))
        artifact.export(folder / "c")
        command = [f"{prefix}gcc", *flags, "-O2", "-std=c99", "-ffp-contract=off", "-c", "m.c"]
        subprocess.run(command, cwd=folder / "c", check=True)
        said = subprocess.run(
            [f"{prefix}size", "-A", "m.o"], cwd=folder / "c", check=True, capture_output=True,
            text=True,
        ).stdout  # fmt: skip
    rows = [line.split() for line in said.splitlines()]
    return sum(int(row[1]) for row in rows if row and row[0].startswith(".text"))


@pytest.mark.compiler_version
@pytest.mark.parametrize(
    ("cpu", "kernel", "layer"), CASES, ids=[f"{c}-{k}-{n.op.name}" for c, k, n in CASES]
)
def test_stated_code_is_about_what_is_compiled(cpu: str, kernel: str, layer: Node) -> None:
    """Within a third, beside loops around kernels; of what is shared, a fifth is enough."""
    offered = candidates(layer, config_for(cpu, kernel))
    stated = next(c.code_bytes for c in offered if c.kernel == kernel and c.is_plain)
    added = compiled_bytes(cpu, kernel, layer) - compiled_bytes(cpu, "direct", layer)
    most = added * (1 if kernel in SHARED else 4 / 3) + 350
    least = added * (1 / 5 if kernel in SHARED else 2 / 3) - 200
    assert least <= stated <= most, f"stated {stated}, compiled {added}"


def test_every_kernel_that_adds_code_says_so() -> None:
    """A kernel without code of its own is free where flash is the goal; additions are smaller."""
    for cpu, kernel, layer in CASES:
        offered = candidates(layer, config_for(cpu, kernel))
        stated = {c.kernel: c.code_bytes for c in offered if c.is_plain}
        assert (stated[kernel] > 0) is (kernel != "add_s8_1x8_avx2"), (cpu, kernel)
