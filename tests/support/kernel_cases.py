"""Random layers for each kernel around register blocks, and their functions."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType

from microtir.config import CompilationConfig, Target
from microtir.graph.ir import Tensor
from microtir.kernels import candidates, emit
from microtir.plan.ir import Kernel, Layout, LayoutKind, PlannedOperator
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.function import LayerName
from microtir.tir.ir import PrimFunc
from microtir.tir.verify import verify
from tests.support.dsp_cases import DspCase, add, convolution, pool
from tests.support.seeds import seeds

M3 = CompilationConfig.from_target(Target("c -mcpu=cortex-m3"))
M4 = CompilationConfig.from_target(Target("c -mcpu=cortex-m4"))
RV32 = CompilationConfig.from_target(Target("c -march=rv32imc"))
M55 = CompilationConfig.from_target(Target("c -mcpu=cortex-m55"))
CONVOLUTIONS = {
    Kernel.GEMM: M4, Kernel.GEMM_COMPACT: M4, Kernel.GEMM_NARROW: M4, Kernel.GEMM_WINDOWS: M4,
    Kernel.GEMM_APART: M4, Kernel.GEMM_COMPACT_APART: M4,
    Kernel.GEMM_VECTORS: M55, Kernel.GEMM_BYTES: M4, Kernel.GEMM_BYTES_SINGLE: M4,
    Kernel.BLOCKED: M3, Kernel.BLOCKED_COMPACT: M3, Kernel.BLOCKED_WIDE: RV32,
}  # fmt: skip
DEPTHWISE = {
    Kernel.DEPTHWISE_PLANES: M4, Kernel.DEPTHWISE_WORDS: M4, Kernel.DEPTHWISE_SINGLE: M4,
    Kernel.DEPTHWISE_ROWS: M4, Kernel.DEPTHWISE_BLOCKED: M3, Kernel.DEPTHWISE_WIDE: RV32,
    Kernel.DEPTHWISE_VECTORS: M55,
}  # fmt: skip
ADDS = {Kernel.ADD_SHIFTED: M4, Kernel.ADD_PORTABLE: M3, Kernel.ADD_VECTORS: M55}
POOLS = {Kernel.POOL_WORDS: M4, Kernel.POOL_VECTORS: M55}
ACCUMULATING = {Kernel.ACCUMULATE_WORDS: M4, Kernel.ACCUMULATE_VECTORS: M55}
CONFIGS = CONVOLUTIONS | DEPTHWISE | ADDS | POOLS
TARGETS = CONFIGS | ACCUMULATING


def planned(case: DspCase, kernel: Kernel) -> PlannedOperator | None:
    """Return the case with a kernel, if it offers that."""
    node = case.graph.nodes[0]
    offered = {c.kernel: c for c in candidates(node, TARGETS[kernel]) if c.is_plain}
    return PlannedOperator(node, offered[kernel]) if kernel in offered else None


def found(kernel: Kernel, count: int) -> list[tuple[DspCase, PlannedOperator]]:
    """Find cases that a kernel accepts."""
    if kernel in ADDS:
        make = add
    elif kernel in POOLS:
        make = pool
    elif kernel in CONVOLUTIONS:
        make = partial(convolution, pointwise=kernel is Kernel.GEMM_NARROW)
    else:
        make = partial(convolution, depthwise=True, square=kernel is Kernel.DEPTHWISE_PLANES)
    cases: list[tuple[DspCase, PlannedOperator]] = []
    for seed in seeds(5000, 400):
        case = make(seed)
        operator = planned(case, kernel)
        if operator is not None:
            cases.append((case, operator))
        if len(cases) == count:
            return cases
    raise AssertionError(f"too few cases for {kernel}")


def emitted(operator: PlannedOperator, slots: dict[Tensor, int]) -> PrimFunc:
    """Emit the layer function with rings of the given heights."""
    tensors = (*operator.inputs, *operator.node.outputs)
    layouts = {t: Layout(LayoutKind.NHWC, slots.get(t, t.type.rows)) for t in tensors}
    function = emit(operator, MappingProxyType(layouts), LayerName("layer"))
    verify(function)
    prove_accesses(function)
    return function
