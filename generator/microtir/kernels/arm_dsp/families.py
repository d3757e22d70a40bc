"""Rows of the lowering table: kernels for CPUs with Arm's DSP extension."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from microtir.config.features import Feature
from microtir.kernels.arm_dsp import (
    add,
    convolution,
    convolution_costs,
    dense,
    depthwise,
    depthwise_rows,
    depthwise_sums,
    gemm_bytes,
    narrow,
    planes,
    windows,
)
from microtir.kernels.arm_dsp.convolution_costs import Costs
from microtir.kernels.common.family import Family
from microtir.kernels.common.micro_kernel import COMPACT, COMPACT_APART, FAST, FAST_APART, Unroll
from microtir.kernels.portable import accumulate
from microtir.operators.common.formula import same_row, same_row_if
from microtir.operators.convolution.formula import row_window
from microtir.operators.dense.formula import keeps_rows
from microtir.plan.ir import Kernel, LayoutKind
from microtir.tir.dtype import DType

_CYCLES = {False: 135, True: 112}  # of 100 instructions, where words are loaded one by one or not


def _gemm(kernel: Kernel, unroll: Unroll, writes: LayoutKind) -> Family:
    """A form of matrix products; `cycles` are less where words are loaded one by one."""
    is_planar = writes is not LayoutKind.NHWC
    costs = Costs(unroll, is_planar)
    return Family(
        kernel,
        None,
        row_window,
        costs.in_one_call,
        convolution.planes_refusal if is_planar else convolution.refusal,
        Feature.DSP,
        convolution_costs.scratch_bytes,
        costs.code_bytes,
        partial(convolution.emit, unroll=unroll),
        row_cost=costs.by_rows,
        alone=costs.alone,
        cycles=_CYCLES[unroll.apart] + 2 * is_planar,
        writes=writes,
    )


GEMM = tuple(
    _gemm(kernel, unroll, writes)
    for writes in LayoutKind
    for kernel, unroll in (
        (Kernel.GEMM, FAST),
        (Kernel.GEMM_COMPACT, COMPACT),
        (Kernel.GEMM_APART, FAST_APART),
        (Kernel.GEMM_COMPACT_APART, COMPACT_APART),
    )
)
ADD = Family(
    Kernel.ADD_SHIFTED,
    None,
    same_row,
    add.cost,
    add.refusal,
    Feature.DSP,
    build=add.emit,
    cycles=106,
)
GEMM_BYTES, GEMM_BYTES_SINGLE = (
    Family(
        kernel,
        None,
        row_window,
        form.cost,
        form.refusal,
        Feature.DSP,
        form.scratch_bytes,
        form.code_bytes,
        form.emit,
        row_cost=form.row_cost,
        alone=form.alone,
        cycles=120,
    )
    for kernel, form in (
        (Kernel.GEMM_BYTES, gemm_bytes.PAIRS),
        (Kernel.GEMM_BYTES_SINGLE, gemm_bytes.SINGLE),
    )
)
GEMM_NARROW = Family(
    Kernel.GEMM_NARROW,
    None,
    row_window,
    narrow.cost,
    narrow.refusal,
    Feature.DSP,
    narrow.scratch_bytes,
    narrow.code_bytes,
    narrow.emit,
    cycles=151,
)
GEMM_NARROW_PLANES = tuple(
    replace(GEMM_NARROW, cost=narrow.planes_cost, refuses=narrow.planes_refusal, writes=kind)
    for kind in (LayoutKind.PLANES16, LayoutKind.PLANES8)
)
GEMM_WINDOWS = Family(
    Kernel.GEMM_WINDOWS,
    None,
    row_window,
    windows.cost,
    windows.refusal,
    Feature.DSP,
    windows.scratch_bytes,
    windows.code_bytes,
    windows.emit,
    row_cost=windows.row_cost,
    pair_cost=windows.pair_cost,
    cycles=116,
)
GEMM_WINDOWS_PLANES = tuple(
    replace(
        GEMM_WINDOWS,
        cost=windows.into_planes(windows.cost),
        row_cost=windows.into_planes(windows.row_cost),
        pair_cost=windows.into_planes(windows.pair_cost),
        refuses=windows.planes_refusal,
        writes=kind,
    )
    for kind in (LayoutKind.PLANES16, LayoutKind.PLANES8)
)
DENSE = Family(
    Kernel.DENSE_PAIRS,
    None,
    same_row_if(keeps_rows),
    dense.cost,
    dense.refusal,
    Feature.DSP,
    code=dense.code_bytes,
    build=dense.emit,
    cycles=139,
)
DEPTHWISE = Family(
    Kernel.DEPTHWISE_WORDS,
    None,
    row_window,
    depthwise.cost,
    depthwise.refusal,
    Feature.DSP,
    depthwise.scratch_bytes,
    depthwise.code_bytes,
    depthwise.emit,
    alone=depthwise.alone,
    cycles=141,
)
DEPTHWISE_SINGLE = replace(
    DEPTHWISE,
    kernel=Kernel.DEPTHWISE_SINGLE,
    cost=depthwise.single_cost,
    code=depthwise.single_code_bytes,
    alone=depthwise.single_alone,
    build=depthwise.emit_single,
    cycles=150,
)
DEPTHWISE_ROWS = Family(
    Kernel.DEPTHWISE_ROWS,
    None,
    row_window,
    depthwise_rows.cost,
    depthwise_rows.refusal,
    Feature.DSP,
    code=depthwise_rows.code_bytes,
    build=depthwise_rows.emit,
    cycles=141,
)
DEPTHWISE_SUMS = Family(
    Kernel.ACCUMULATE_WORDS,
    None,
    same_row,
    depthwise_sums.cost,
    depthwise_sums.refusal,
    Feature.DSP,
    accumulators=accumulate.accumulator_bytes,
    code=depthwise_sums.code_bytes,
    build=depthwise_sums.emit,
    finish=accumulate.emit_finish,
    cycles=130,
)
DEPTHWISE_PLANES = Family(
    Kernel.DEPTHWISE_PLANES,
    None,
    row_window,
    planes.cost,
    planes.refusal,
    Feature.DSP,
    planes.scratch_bytes,
    planes.code_bytes,
    planes.emit,
    row_cost=planes.row_cost,
    pair_cost=planes.pair_cost,
    cycles=111,
)
# The same over planes that the producer has written.
DEPTHWISE_PLANAR = tuple(
    replace(
        DEPTHWISE_PLANES,
        cost=form.cost,
        refuses=form.refusal,
        scratch=form.scratch_bytes,
        code=form.code_bytes,
        row_cost=form.cost,
        pair_cost=form.cost,
        reads=kind,
        planes=form.planes,
    )
    for kind, form in (
        (LayoutKind.PLANES16, planes.Planar(DType.INT16)),
        (LayoutKind.PLANES8, planes.Planar(DType.INT8)),
    )
)
