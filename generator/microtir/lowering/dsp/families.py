"""Rows of the lowering table: kernels for CPUs with Arm's DSP extension."""

from __future__ import annotations

from dataclasses import replace

from microtir.config.features import Feature
from microtir.lowering.convolution import row_window
from microtir.lowering.dense import keeps_rows
from microtir.lowering.dsp import (
    add,
    convolution,
    convolution_costs,
    dense,
    depthwise,
    narrow,
    planes,
)
from microtir.lowering.dsp.convolution_costs import Costs
from microtir.lowering.dsp.micro_kernel import COMPACT, FAST
from microtir.lowering.family import Family, same_row, same_row_if
from microtir.plan.ir import Kernel, LayoutKind
from microtir.tir.dtype import DType

_FAST, _FAST_PLANES = (Costs(FAST, into_planes) for into_planes in (False, True))
_COMPACT, _COMPACT_PLANES = (Costs(COMPACT, into_planes) for into_planes in (False, True))
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
GEMM = Family(
    Kernel.GEMM,
    None,
    row_window,
    _FAST.in_one_call,
    convolution.refusal,
    Feature.DSP,
    convolution_costs.scratch_bytes,
    _FAST.code_bytes,
    convolution.emit,
    row_cost=_FAST.by_rows,
    alone=_FAST.alone,
    cycles=125,
)
GEMM_COMPACT = replace(
    GEMM,
    kernel=Kernel.GEMM_COMPACT,
    cost=_COMPACT.in_one_call,
    row_cost=_COMPACT.by_rows,
    alone=_COMPACT.alone,
    code=_COMPACT.code_bytes,
    build=convolution.emit_compact,
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
# Matrix products into planes.
GEMM_PLANES = tuple(
    replace(
        family,
        cost=costs.in_one_call,
        row_cost=costs.by_rows,
        alone=costs.alone,
        code=costs.code_bytes,
        refuses=convolution.planes_refusal,
        writes=kind,
    )
    for kind in (LayoutKind.PLANES16, LayoutKind.PLANES8)
    for family, costs in ((GEMM, _FAST_PLANES), (GEMM_COMPACT, _COMPACT_PLANES))
)
GEMM_NARROW_PLANES = tuple(
    replace(GEMM_NARROW, cost=narrow.planes_cost, refuses=narrow.planes_refusal, writes=kind)
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
