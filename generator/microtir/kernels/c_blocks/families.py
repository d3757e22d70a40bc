"""Rows of the lowering table for kernels in plain C: blocks of sums in registers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from microtir.config.features import Family as CpuFamily
from microtir.config.features import Feature
from microtir.config.target import Target
from microtir.kernels.c_blocks import convolution as blocked_convolution
from microtir.kernels.c_blocks import dense as blocked_dense
from microtir.kernels.c_blocks import depthwise as blocked_depthwise
from microtir.kernels.common.family import Family
from microtir.operators.common.formula import same_row_if
from microtir.operators.convolution import formula as convolution
from microtir.operators.dense import formula as dense
from microtir.plan.ir import Kernel


def passes_constants(target: Target) -> bool:
    """Whether a function can be given a pointer to constants: on an AVR it cannot."""
    return not target.has(Feature.AVR_PROGMEM)


def _is_riscv(target: Target) -> bool:
    return target.family is CpuFamily.RISCV


def _takes_long_turns(target: Target) -> bool:
    """Compilers for RISC-V load all elements of a turn first, and spill."""
    return passes_constants(target) and not _is_riscv(target)


def _waits_for_products(target: Target) -> bool:
    """Whether a multiply-add of floats takes longer than a product and a sum: on a Cortex-M4."""
    return target.march == "armv7e-m" and not target.has(Feature.FPU_DOUBLE)


BLOCKED_COMPACT = Family(
    Kernel.BLOCKED_COMPACT,
    None,
    convolution.row_window,
    blocked_convolution.compact_cost,
    blocked_convolution.refusal_int8,
    suits=passes_constants,
    scratch=blocked_convolution.scratch_bytes,
    code=blocked_convolution.compact_code_bytes,
    build=blocked_convolution.emit_compact,
    row_cost=blocked_convolution.compact_row_cost,
    cycles=128,
)
BLOCKED = replace(
    BLOCKED_COMPACT,
    kernel=Kernel.BLOCKED,
    suits=_takes_long_turns,
    cost=blocked_convolution.cost,
    code=blocked_convolution.code_bytes,
    build=blocked_convolution.emit,
    row_cost=blocked_convolution.row_cost,
    cycles=126,
)
BLOCKED_WIDE = replace(
    BLOCKED_COMPACT,
    kernel=Kernel.BLOCKED_WIDE,
    suits=_is_riscv,
    cost=partial(blocked_convolution.cost, form=blocked_convolution.WIDE),
    code=partial(blocked_convolution.code_bytes, form=blocked_convolution.WIDE),
    build=partial(blocked_convolution.emit, form=blocked_convolution.WIDE),
    row_cost=partial(blocked_convolution.row_cost, form=blocked_convolution.WIDE),
)
BLOCKED_FLOAT = replace(
    BLOCKED,
    refuses=blocked_convolution.refusal_float,
    needs=Feature.FPU,
    cycles=234,
)
BLOCKED_APART = replace(
    BLOCKED_FLOAT,
    kernel=Kernel.BLOCKED_APART,
    suits=_waits_for_products,
    cost=partial(blocked_convolution.cost, form=blocked_convolution.APART),
    row_cost=partial(blocked_convolution.row_cost, form=blocked_convolution.APART),
    code=partial(blocked_convolution.code_bytes, form=blocked_convolution.APART),
    build=partial(blocked_convolution.emit, form=blocked_convolution.APART),
    cycles=115,
)
BLOCKED_COMPACT_FLOAT = replace(
    BLOCKED_COMPACT,
    refuses=blocked_convolution.refusal_float,
    needs=Feature.FPU,
    cycles=214,
)
BLOCKED_DEPTHWISE = replace(
    BLOCKED_COMPACT,
    kernel=Kernel.DEPTHWISE_BLOCKED,
    suits=_takes_long_turns,
    refuses=blocked_depthwise.refusal_int8,
    cost=blocked_depthwise.cost,
    scratch=blocked_depthwise.scratch_bytes,
    code=blocked_depthwise.code_bytes,
    build=blocked_depthwise.emit,
    row_cost=blocked_depthwise.row_cost,
    cycles=125,
)
DEPTHWISE_WIDE = replace(
    BLOCKED_DEPTHWISE,
    kernel=Kernel.DEPTHWISE_WIDE,
    suits=_is_riscv,
    cost=partial(blocked_depthwise.cost, form=blocked_depthwise.WIDE),
    code=partial(blocked_depthwise.code_bytes, form=blocked_depthwise.WIDE),
    build=partial(blocked_depthwise.emit, form=blocked_depthwise.WIDE),
    row_cost=partial(blocked_depthwise.row_cost, form=blocked_depthwise.WIDE),
)
BLOCKED_DEPTHWISE_FLOAT = replace(
    BLOCKED_DEPTHWISE,
    suits=passes_constants,
    refuses=blocked_depthwise.refusal_float,
    needs=Feature.FPU,
    cycles=176,
)
DEPTHWISE_APART = replace(
    BLOCKED_DEPTHWISE_FLOAT,
    kernel=Kernel.DEPTHWISE_APART,
    suits=_waits_for_products,
    cost=partial(blocked_depthwise.cost, form=blocked_depthwise.APART),
    row_cost=partial(blocked_depthwise.row_cost, form=blocked_depthwise.APART),
    code=partial(blocked_depthwise.code_bytes, form=blocked_depthwise.APART),
    build=partial(blocked_depthwise.emit, form=blocked_depthwise.APART),
    cycles=118,
)
BLOCKED_DENSE = Family(
    Kernel.BLOCKED,
    None,
    same_row_if(dense.keeps_rows),
    blocked_dense.cost,
    blocked_dense.refusal_int8,
    suits=passes_constants,
    code=blocked_dense.code_bytes,
    build=blocked_dense.emit,
    cycles=123,
)
BLOCKED_DENSE_FLOAT = replace(
    BLOCKED_DENSE,
    refuses=blocked_dense.refusal_float,
    needs=Feature.FPU,
    cycles=190,
)
BLOCKED_DENSE_APART = replace(
    BLOCKED_DENSE_FLOAT,
    kernel=Kernel.BLOCKED_APART,
    suits=_waits_for_products,
    cost=partial(blocked_dense.cost, apart=True),
    code=partial(blocked_dense.code_bytes, apart=True),
    build=partial(blocked_dense.emit, apart=True),
    cycles=116,
)
