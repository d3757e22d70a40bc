"""Random layers for each kernel around register blocks, and their functions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from itertools import islice
from types import MappingProxyType

from microtir.config import CompilationConfig, Target
from microtir.graph.ir import Tensor
from microtir.kernels import candidates, emit
from microtir.kernels.table import kernels_of
from microtir.plan.ir import Layout, LayoutKind, PlannedOperator
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.function import LayerName
from microtir.tir.ir import PrimFunc
from microtir.tir.verify import verify
from tests.support.block_dense_cases import block_dense
from tests.support.dsp_cases import (
    FEW_TILES,
    ONE_COLUMN,
    DspCase,
    convolution,
    fully_connected,
    in_four_bits,
    in_int16,
    in_whole_floats,
    pool,
    pool_of_floats,
    tiled,
)
from tests.support.elementwise_cases import arithmetic, elementwise, of_floats, sigmoid
from tests.support.float_edge_cases import float_edge
from tests.support.reduced_cases import normalised, reduced, softmaxed
from tests.support.seeds import seeds

M0 = CompilationConfig.from_target(Target("c -mcpu=cortex-m0"))
M3 = CompilationConfig.from_target(Target("c -mcpu=cortex-m3"))
M4 = CompilationConfig.from_target(Target("c -mcpu=cortex-m4"))
RV32 = CompilationConfig.from_target(Target("c -march=rv32imc"))
ZBB = CompilationConfig.from_target(Target("c -march=rv32imc_zbb"))
M55 = CompilationConfig.from_target(Target("c -mcpu=cortex-m55"))
# By a budget that never matters, for what is offered only where there is one.
M4_LITTLE_FLASH = M4.with_(budget={"flash": 1 << 30})
CONVOLUTIONS = {
    "conv_s8_2x4_dsp": M4, "conv_s8_2x4_dsp_compact": M4, "conv_s8_8x1_dsp": M4,
    "conv_s8_4x2_dsp": M4, "conv_s8_2x4_dsp_single_loads": M4, "conv_s8_16x2_dsp_winograd": M4,
    "conv_s8_2x4_dsp_compact_single_loads": M4, "conv_s8_8x2_dsp_winograd": M4,
    "conv_s8_4x4_dsp_winograd": M4, "conv_s8_16x2_dsp_winograd_bands_2": M4_LITTLE_FLASH,
    "conv_s8_16x2_dsp_winograd_bands_4": M4_LITTLE_FLASH,
    "conv_s8_2x4_mve": M55, "conv_s8_2x4_dsp_bytes": M4, "conv_s8_1x8_dsp_bytes": M4,
    "conv_s8_4x2_c": M3, "conv_s8_4x2_c_compact": M3, "conv_s8_4x4_c": RV32,
    "conv_s16_2x4_mve": M55, "conv_s16_2x4_dsp": M4, "conv_s16_2x2_dsp_wide": M4,
    "conv_s16_2x4_mve_wide": M55, "conv_s16_4x2_c": M3, "conv_s16_4x2_c_compact": M3,
    "conv_s16_4x4_c": RV32,
    "conv_s8_4x4_zbb": ZBB, "conv_s8_4x2_zbb_compact": ZBB,
    "conv_s8_16x2_c_winograd": M3, "conv_f32_4x4_mve": M55, "conv_s4_2x4_dsp": M4,
}  # fmt: skip
DEPTHWISE = {
    "dwconv_s8_4x1_dsp": M4, "dwconv_s8_2x4_dsp": M4, "dwconv_s8_1x4_dsp": M4,
    "dwconv_s8_4x1_dsp_windows": M4,
    "dwconv_s8_1x4_dsp_rows": M4, "dwconv_s8_4x1_c": M3, "dwconv_s8_6x1_c": RV32,
    "dwconv_s16_1x8_mve": M55, "dwconv_s16_1x8_mve_wide": M55, "dwconv_s16_4x2_dsp": M4,
    "dwconv_s16_2x2_dsp_wide": M4,
    "dwconv_s16_4x1_c": M3, "dwconv_s16_6x1_c": RV32, "dwconv_s8_1x16_mve": M55,
    "dwconv_s8_6x1_zbb": ZBB, "dwconv_f32_6x4_mve": M55,
}  # fmt: skip
COLUMNS = {
    "dwconv_s8_4x1_dsp_turned": M4, "dwconv_s8_1x16_mve_turned": M55,
    "dwconv_s16_1x8_mve_turned": M55,
}  # fmt: skip
POOLS = {"pool_s8_1x4_dsp": M4, "pool_s8_1x16_mve": M55, "pool_f32_1x8_dsp": M4}
WHOLE_POOLS = {  # of whole images, never of rings
    "pool_s8_1x4_dsp_windows": M4, "pool_s8_1x16_mve_windows": M55,
}  # fmt: skip
REDUCTIONS = {
    "reduce_s8_1x4_dsp": M4, "reduce_s8_1x16_mve": M55, "softmax_s8_1x4_dsp": M4,
    "softmax_s8_1x4_mve": M55, "l2norm_s8_1x8_mve": M55, "l2norm_s8_1x4_dsp": M4,
}  # fmt: skip
ELEMENTWISE = {
    "lanes_s8_1x4_dsp": M4, "lanes_s8_1x16_mve": M55, "lanes_f32_1x8_dsp": M4,
    "sigmoid_s16_1x2_dsp": M4,
}  # fmt: skip
DENSE = {"dense_s8_1x8_dsp": M4, "dense_s4_1x8_dsp": M4, "dense_s8_2x4_dsp_compact": M4}
BLOCKS = {"blocks_s8_1x4_dsp": M4}
FLOAT_EDGES = {
    "quantize_f32_1x4_dsp": M4, "dequantize_f32_1x4_dsp": M4,
    "quantize_f32_1x4_mve": M55, "dequantize_f32_1x4_mve": M55,
}  # fmt: skip
ARITHMETIC = {"arithmetic_s8_1x1_dsp": M4, "arithmetic_s8_1x4_mve": M55}
ACCUMULATING = {
    "dwconv_s8_1x4_dsp_sums": M4, "pool_s8_1x4_dsp_sums": M4, "pool_s8_1x16_mve_sums": M55,
}  # fmt: skip
# Of plain C; one of them stands for all where rows go through rings.
TILED = {
    "conv_s8_16x2_c_winograd": M3, "conv_s8_16x4_c_winograd": RV32,
    "conv_s8_16x1_c_winograd": M0, "conv_s8_16x4_zbb_winograd": ZBB,
}  # fmt: skip
CONFIGS = CONVOLUTIONS | DEPTHWISE | POOLS
TARGETS = (
    CONFIGS | WHOLE_POOLS | REDUCTIONS | ELEMENTWISE | ARITHMETIC | FLOAT_EDGES
    | COLUMNS | DENSE | BLOCKS | ACCUMULATING | TILED
)  # fmt: skip


def planned(case: DspCase, kernel: str) -> PlannedOperator | None:
    """Return the case with a kernel, if it offers that."""
    node, config = case.graph.nodes[0], TARGETS[kernel]
    # To price all kernels takes long, and most layers are refused.
    if all(able.name != kernel for able in kernels_of(node, config.primary_target())):
        return None
    offered = {c.kernel: c for c in candidates(node, config) if c.is_plain}
    return PlannedOperator(node, offered[kernel]) if kernel in offered else None


_FOUND = 12


def found(kernel: str, count: int = _FOUND) -> list[tuple[DspCase, PlannedOperator]]:
    """Find cases that a kernel accepts."""
    if count <= _FOUND:
        return list(_some(kernel)[:count])
    return list(islice(_accepted(kernel), count))


@cache
def _some(kernel: str) -> tuple[tuple[DspCase, PlannedOperator], ...]:
    return tuple(islice(_accepted(kernel), _FOUND))


def _accepted(kernel: str) -> Iterator[tuple[DspCase, PlannedOperator]]:
    """Yield random cases that a kernel accepts; an error if there are too few."""
    if kernel in POOLS | WHOLE_POOLS:
        make = pool_of_floats if "f32" in kernel else pool
    elif kernel in REDUCTIONS:
        others = {"softmax": softmaxed, "l2norm": normalised}
        make = others.get(kernel.partition("_")[0], reduced)
    elif kernel in COLUMNS:
        make = partial(convolution, depthwise=True, sizes=ONE_COLUMN)
    elif kernel in DENSE:
        make = fully_connected
    elif kernel in ELEMENTWISE:
        others = {"lanes_f32_1x8_dsp": of_floats, "sigmoid_s16_1x2_dsp": sigmoid}
        make = others.get(kernel, elementwise)
    elif kernel in FLOAT_EDGES:
        make = float_edge
    elif kernel in BLOCKS:
        make = block_dense
    elif kernel in ARITHMETIC:
        make = arithmetic
    elif kernel in TILED:
        make = partial(tiled, sizes=FEW_TILES)
    elif "_winograd" in kernel:
        make = tiled
    elif kernel in CONVOLUTIONS:
        make = partial(convolution, pointwise=kernel == "conv_s8_8x1_dsp")
    else:
        make = partial(convolution, depthwise=True, square=kernel == "dwconv_s8_4x1_dsp")
    of_floats_alone = "conv_f32" in kernel
    for seed in seeds(5000, 400):
        is_made_long = "_s16_" in kernel and kernel not in ELEMENTWISE
        case = in_int16(seed, make(seed)) if is_made_long else make(seed)
        case = in_whole_floats(seed, case) if of_floats_alone else case
        case = in_four_bits(case) if "_s4_" in kernel else case
        operator = planned(case, kernel)
        if operator is not None:
            yield case, operator
    raise AssertionError(f"too few cases for {kernel}")


def emitted(operator: PlannedOperator, slots: dict[Tensor, int]) -> PrimFunc:
    """Emit the layer function with rings of the given heights."""
    tensors = (*operator.inputs, *operator.node.outputs)
    layouts = {t: Layout(LayoutKind.NHWC, slots.get(t, t.type.rows)) for t in tensors}
    function = emit(operator, MappingProxyType(layouts), LayerName("layer"))
    verify(function)
    prove_accesses(function)
    return function
