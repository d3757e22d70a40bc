"""The table of kernels: which can compute an operator.

What any target can do follows from the operator's record; a kernel beside that is a row here.
There is no registry.  Candidates are described without emitting any TIR, because planning comes
first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from microtir.config.features import Feature
from microtir.config.target import Target
from microtir.graph.ir import Node
from microtir.graph.macs import macs
from microtir.graph.operator import Operator
from microtir.kernels.arm_dsp import add as dsp_add
from microtir.kernels.arm_dsp import copying
from microtir.kernels.arm_dsp import families as dsp
from microtir.kernels.arm_dsp import pooling as dsp_pooling
from microtir.kernels.arm_mve import add as mve_add
from microtir.kernels.arm_mve import convolution as mve_convolution
from microtir.kernels.arm_mve import dense as mve_dense
from microtir.kernels.arm_mve import depthwise as mve_depthwise
from microtir.kernels.arm_mve import pooling as mve_pooling
from microtir.kernels.c_blocks.families import (
    BLOCKED,
    BLOCKED_APART,
    BLOCKED_COMPACT,
    BLOCKED_COMPACT_FLOAT,
    BLOCKED_DENSE,
    BLOCKED_DENSE_APART,
    BLOCKED_DENSE_FLOAT,
    BLOCKED_DEPTHWISE,
    BLOCKED_DEPTHWISE_FLOAT,
    BLOCKED_FLOAT,
    BLOCKED_WIDE,
    DEPTHWISE_APART,
    DEPTHWISE_WIDE,
    passes_constants,
)
from microtir.kernels.common import pool_runs
from microtir.kernels.common.family import Family
from microtir.kernels.portable import accumulate, custom, lookup
from microtir.kernels.x86_avx2 import add as vector_add
from microtir.kernels.x86_avx2 import convolution as vector_convolution
from microtir.kernels.x86_avx2 import depthwise as vector_depthwise
from microtir.kernels.x86_avx2 import pooling as vector_pooling
from microtir.operators import OPERATORS, OperatorRecord, record_of
from microtir.operators.arithmetic.definition import Add
from microtir.operators.common.formula import Formula, same_row, same_row_if, whole
from microtir.operators.convolution import formula as convolution
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.definition import Trait
from microtir.operators.dense import formula as dense
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.movement.definition import Reshape, StridedSlice
from microtir.operators.pooling import formula as pooling
from microtir.operators.pooling.definition import AveragePool2D, MaxPool2D
from microtir.operators.reduction.definition import Mean
from microtir.operators.streaming.definition import JoinColumns, PlaceColumns
from microtir.operators.tables import has_table
from microtir.plan.ir import Candidate, Kernel, Refusal


def _is_table(node: Node) -> bool:
    return has_table(node.op, node.inputs[0].type, node.output.type)


def _no_table(node: Node) -> Refusal | None:
    return None if _is_table(node) else Refusal.NO_TABLE


def _table(node: Node) -> Refusal | None:
    return Refusal.TABLE if _is_table(node) else None


_LOOK_UP = Family(Kernel.TABLE, lookup.table, same_row, 4, _no_table)


def _of_formula(formula: Formula, record: OperatorRecord) -> Family:
    """The formula of an operator as a naive loop nest."""
    return Family(
        Kernel.COPY if record.has(Trait.MOVES_DATA) else Kernel.DIRECT,
        formula.compute,
        formula.rows,
        formula.cost,
        _table if record.has(Trait.TABULATED) else lambda _node: None,
    )


def _portable(record: OperatorRecord) -> tuple[Family, ...]:
    """The kernels that follow from what an operator is, on any target."""
    if record.function is not None:
        return (
            Family(Kernel.CUSTOM, None, whole, 20, scratch=custom.scratch_bytes, build=custom.emit),
        )
    tables = (_LOOK_UP,) if record.has(Trait.TABULATED) else ()
    return tables if record.formula is None else (*tables, _of_formula(record.formula, record))


_ADD_PORTABLE = replace(
    dsp.ADD,
    kernel=Kernel.ADD_PORTABLE,
    cost=dsp_add.portable_cost,
    needs=None,
    build=dsp_add.emit_portable,
    suits=passes_constants,
    cycles=118,
)
_ADD_MVE = Family(
    Kernel.ADD_VECTORS,
    None,
    same_row,
    mve_add.cost,
    mve_add.refusal,
    Feature.MVE,
    build=mve_add.emit,
    cycles=176,
)
_ADD_VECTOR = Family(
    Kernel.ADD_LANES,
    None,
    same_row,
    vector_add.cost,
    vector_add.refusal,
    Feature.VECTOR,
    build=vector_add.emit,
)
_GEMM_MVE = Family(
    Kernel.GEMM_VECTORS,
    None,
    convolution.row_window,
    mve_convolution.cost,
    mve_convolution.refusal,
    Feature.MVE,
    mve_convolution.scratch_bytes,
    mve_convolution.code_bytes,
    mve_convolution.emit,
    row_cost=mve_convolution.row_cost,
    cycles=156,
)
_DENSE_MVE = Family(
    Kernel.GEMM_VECTORS,
    None,
    same_row_if(dense.keeps_rows),
    mve_dense.cost,
    mve_dense.refusal,
    Feature.MVE,
    code=mve_dense.code_bytes,
    build=mve_dense.emit,
    row_cost=mve_dense.row_cost,
    cycles=145,
)
_ACCUMULATE = Family(
    Kernel.ACCUMULATE,
    None,
    same_row,
    accumulate.cost,
    accumulate.refusal,
    build=accumulate.emit,
    accumulators=accumulate.accumulator_bytes,
    finish=accumulate.emit_finish,
)
_GEMM_VECTOR = Family(
    Kernel.GEMM_PANELS,
    None,
    convolution.row_window,
    vector_convolution.cost,
    vector_convolution.refusal,
    Feature.VECTOR,
    vector_convolution.scratch_bytes,
    vector_convolution.code_bytes,
    vector_convolution.emit,
    row_cost=vector_convolution.row_cost,
)
_DEPTHWISE_VECTOR = Family(
    Kernel.DEPTHWISE_LANES,
    None,
    convolution.row_window,
    vector_depthwise.cost,
    vector_depthwise.refusal,
    Feature.VECTOR,
    vector_depthwise.scratch_bytes,
    vector_depthwise.code_bytes,
    vector_depthwise.emit,
    row_cost=vector_depthwise.row_cost,
)
_GEMM_VECTOR_WINDOWS = replace(
    _GEMM_VECTOR,
    kernel=Kernel.GEMM_PANELS_WINDOWS,
    cost=vector_convolution.row_cost,
    refuses=vector_convolution.refusal_window,
    scratch=vector_convolution.window_bytes,
    build=vector_convolution.emit_windows,
)
_DEPTHWISE_VECTOR_WINDOWS = replace(
    _DEPTHWISE_VECTOR,
    kernel=Kernel.DEPTHWISE_LANES_WINDOWS,
    cost=vector_depthwise.row_cost,
    refuses=vector_depthwise.refusal_window,
    scratch=vector_depthwise.window_bytes,
    code=vector_depthwise.window_code_bytes,
    build=vector_depthwise.emit_windows,
)
_DENSE_VECTOR = Family(
    Kernel.GEMM_PANELS,
    None,
    same_row,
    vector_convolution.cost_dense,
    vector_convolution.refusal_dense,
    Feature.VECTOR,
    code=vector_convolution.code_bytes,
    build=vector_convolution.emit_dense,
)
_CONVOLUTION = (
    *dsp.GEMM,
    dsp.GEMM_BYTES,
    dsp.GEMM_BYTES_SINGLE,
    dsp.GEMM_NARROW,
    *dsp.GEMM_NARROW_PLANES,
    dsp.GEMM_WINDOWS,
    *dsp.GEMM_WINDOWS_PLANES,
    _GEMM_MVE,
    _GEMM_VECTOR,
    _GEMM_VECTOR_WINDOWS,
    BLOCKED,
    BLOCKED_COMPACT,
    BLOCKED_WIDE,
    BLOCKED_FLOAT,
    BLOCKED_COMPACT_FLOAT,
    BLOCKED_APART,
    _ACCUMULATE,
)
_DEPTHWISE_MVE = Family(
    Kernel.DEPTHWISE_VECTORS,
    None,
    convolution.row_window,
    mve_depthwise.cost,
    mve_depthwise.refusal,
    Feature.MVE,
    mve_depthwise.scratch_bytes,
    mve_depthwise.code_bytes,
    mve_depthwise.emit,
    row_cost=mve_depthwise.row_cost,
    cycles=157,
)
_POOL_MVE = Family(
    Kernel.POOL_VECTORS,
    None,
    pooling.row_window,
    mve_pooling.cost,
    pool_runs.refusal,
    Feature.MVE,
    pool_runs.scratch_bytes,
    mve_pooling.code_bytes,
    partial(pool_runs.emit, kernels=mve_pooling.KERNELS),
    cycles=123,
)
_POOL_DSP = replace(
    _POOL_MVE,
    kernel=Kernel.POOL_WORDS,
    cost=dsp_pooling.cost,
    needs=Feature.DSP,
    code=dsp_pooling.code_bytes,
    build=partial(pool_runs.emit, kernels=dsp_pooling.KERNELS),
    cycles=139,
)
_ACCUMULATE_POOL_MVE = Family(
    Kernel.ACCUMULATE_VECTORS,
    None,
    same_row,
    mve_pooling.rows_cost,
    pool_runs.refusal_rows,
    Feature.MVE,
    accumulators=pool_runs.scratch_bytes,
    code=mve_pooling.code_bytes,
    build=partial(pool_runs.emit_rows, kernels=mve_pooling.KERNELS),
    finish=partial(pool_runs.emit_finish, kernels=mve_pooling.KERNELS),
    cycles=123,
)
_ACCUMULATE_POOL_DSP = replace(
    _ACCUMULATE_POOL_MVE,
    kernel=Kernel.ACCUMULATE_WORDS,
    cost=dsp_pooling.rows_cost,
    needs=Feature.DSP,
    code=dsp_pooling.code_bytes,
    build=partial(pool_runs.emit_rows, kernels=dsp_pooling.KERNELS),
    finish=partial(pool_runs.emit_finish, kernels=dsp_pooling.KERNELS),
    cycles=139,
)
_COPY_DSP = Family(
    Kernel.COPY_WORDS,
    None,
    same_row,
    copying.cost,
    copying.refusal,
    Feature.DSP,
    build=copying.emit,
)
_VIEW = Family(Kernel.VIEW, None, whole, 0)

_SPECIAL: Mapping[type[Operator], tuple[Family, ...]] = MappingProxyType(
    {
        Conv2D: _CONVOLUTION,
        DepthwiseConv2D: (
            *_CONVOLUTION,
            dsp.DEPTHWISE,
            dsp.DEPTHWISE_SINGLE,
            dsp.DEPTHWISE_ROWS,
            dsp.DEPTHWISE_SUMS,
            dsp.DEPTHWISE_PLANES,
            *dsp.DEPTHWISE_PLANAR,
            BLOCKED_DEPTHWISE,
            DEPTHWISE_WIDE,
            BLOCKED_DEPTHWISE_FLOAT,
            DEPTHWISE_APART,
            _DEPTHWISE_MVE,
            _DEPTHWISE_VECTOR,
            _DEPTHWISE_VECTOR_WINDOWS,
        ),
        FullyConnected: (
            dsp.DENSE,
            BLOCKED_DENSE,
            BLOCKED_DENSE_FLOAT,
            BLOCKED_DENSE_APART,
            _DENSE_MVE,
            _DENSE_VECTOR,
        ),
        AveragePool2D: (
            Family(
                Kernel.POOL_LANES,
                None,
                pooling.row_window,
                1,
                vector_pooling.refusal,
                Feature.VECTOR,
                code=vector_pooling.code_bytes,
                build=vector_pooling.emit,
            ),
            _ACCUMULATE,
            _ACCUMULATE_POOL_DSP,
            _ACCUMULATE_POOL_MVE,
            _POOL_DSP,
            _POOL_MVE,
        ),
        MaxPool2D: (_POOL_DSP, _POOL_MVE),
        Mean: (_ACCUMULATE,),
        Add: (dsp.ADD, _ADD_MVE, _ADD_PORTABLE, _ADD_VECTOR),
        Reshape: (_VIEW,),
        StridedSlice: (_COPY_DSP,),
        PlaceColumns: (_COPY_DSP,),
        JoinColumns: (_VIEW,),
    }
)
"""Kernels beside those that follow from what an operator is."""

FAMILIES: Mapping[type[Operator], tuple[Family, ...]] = MappingProxyType(
    {record.op: (*_portable(record), *_SPECIAL.get(record.op, ())) for record in OPERATORS}
)


def families_of(node: Node, target: Target | None = None) -> tuple[Family, ...]:
    """The families that can compute a node, in order of preference at equal cost.

    Args:
        node: of a legalised graph.
        target: leaves out what it has no features for; None: whatever a target can do.
    """
    return tuple(f for f in _offered(node, target) if f.refusal(node) is None)


def family_of(node: Node, kernel: Kernel) -> Family:
    """The first family of a kernel that can compute a node; there is one."""
    named = (f for f in _offered(node, None) if f.kernel is kernel)
    return next(f for f in named if f.refusal(node) is None)


def refusals_of(node: Node, target: Target) -> tuple[tuple[Kernel, Refusal], ...]:
    """Kernels for the target that cannot compute a node, and why; each that can is left out."""
    reasons = [(f.kernel, f.refusal(node)) for f in _offered(node, target)]
    able = {kernel for kernel, reason in reasons if reason is None}
    refused: dict[Kernel, Refusal] = {}
    for kernel, reason in reasons:
        # Several families may be one kernel for different types: what speaks against the right
        # one is of interest.
        known = refused.get(kernel, Refusal.TYPES)
        if reason is not None and kernel not in able and known is Refusal.TYPES:
            refused[kernel] = reason
    return tuple(refused.items())


def _offered(node: Node, target: Target | None) -> tuple[Family, ...]:
    offered = FAMILIES.get(type(node.op))
    if offered is None:
        offered = _portable(record_of(node.op))
    return tuple(f for f in offered if target is None or f.is_for(target))


def candidate(node: Node, family: Family) -> Candidate:
    """Describe one family's kernel for a node."""
    window = family.window(node)
    activations = node.activations
    work = max(macs(node), sum(t.type.elements for t in node.outputs))
    cost = family.cost * work if isinstance(family.cost, int) else family.cost(node)
    by_row = cost if family.row_cost is None else family.row_cost(node)
    return Candidate(
        kernel=family.kernel,
        input_layouts=(family.reads,) * len(activations),
        output_layouts=(family.writes,) * len(node.outputs),
        windows=None if window is None else (window,) * len(activations),
        scratch_bytes=family.scratch(node),
        code_bytes=family.code(node),
        weight_bytes=sum(t.type.bytes for t in node.inputs if t.is_constant),
        accumulator_bytes=family.accumulators(node),
        cost=cost,
        row_cost=by_row,
        pair_cost=by_row if family.pair_cost is None else family.pair_cost(node),
        cycles=cost * family.cycles // 100,
        planes=family.planes(node),
        alone=() if family.alone is None else tuple(family.alone(node, n) for n in range(3)),
    )
