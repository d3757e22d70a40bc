"""The table of kernels: a list for each instruction set, and which kernels compute an operator.

There is no registry that is filled on import.  Candidates are described without emitting any TIR,
because planning comes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from microtir.config.target import Target
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.kernels.arm_dsp.kernel_list import KERNELS as ARM_DSP
from microtir.kernels.arm_mve.kernel_list import KERNELS as ARM_MVE
from microtir.kernels.c_blocks.kernel_list import KERNELS as C_BLOCKS
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.portable.kernel_list import DERIVED, kernels_of_record
from microtir.kernels.portable.kernel_list import KERNELS as PORTABLE
from microtir.kernels.riscv_zbb.kernel_list import KERNELS as RISCV_ZBB
from microtir.kernels.x86_avx2.kernel_list import KERNELS as X86_AVX2
from microtir.operators import record_of
from microtir.plan.ir import Candidate, Refusal

KERNELS: tuple[Kernel, ...] = (*PORTABLE, *ARM_DSP, *ARM_MVE, *X86_AVX2, *C_BLOCKS, *RISCV_ZBB)


def _place(kernel: Kernel) -> tuple[bool, bool]:
    """Order what follows from records first, then instruction sets, then what any CPU can do."""
    return kernel not in DERIVED, kernel in PORTABLE


def _by_operator() -> Mapping[type[Operator], tuple[Kernel, ...]]:
    by_operator: dict[type[Operator], list[Kernel]] = {}
    for kernel in KERNELS:
        for op in kernel.operators:
            by_operator.setdefault(op, []).append(kernel)
    return MappingProxyType(
        {op: tuple(sorted(kernels, key=_place)) for op, kernels in by_operator.items()}
    )


BY_OPERATOR = _by_operator()


def kernels_of(node: Node, target: Target | None = None) -> tuple[Kernel, ...]:
    """Return the kernels that can compute a node, in order of preference at equal cost.

    Args:
        node: of a legalised graph.
        target: leaves out what it has no features for; None: whatever a target can do.
    """
    able = (k for k in _offered(node, target) if k.refusal(node) is None)
    return tuple(k for k in able if target is None or k.suits_node(node, target))


def kernel_of(node: Node, candidate: Candidate) -> Kernel:
    """Return the kernel that a candidate of a node describes."""
    named = (k for k in _offered(node, None) if k.name == candidate.kernel)
    kinds = (candidate.input_layouts, candidate.output_layouts)
    inputs, outputs = len(node.activations), len(node.outputs)
    matching = (k for k in named if ((k.reads,) * inputs, (k.writes,) * outputs) == kinds)
    return next(k for k in matching if k.refusal(node) is None)


def refusals_of(node: Node, target: Target) -> tuple[tuple[str, Refusal], ...]:
    """Return kernels for the target that cannot compute a node, and why; others are left out."""
    offered = [(k, k.refusal(node)) for k in _offered(node, target)]
    able = {kernel.name for kernel, reason in offered if reason is None}
    # Of instances of a class for other types, that for the right one says what is of interest.
    right = {type(kernel) for kernel, reason in offered if reason is not Refusal.TYPES}
    refused: dict[str, Refusal] = {}
    for kernel, reason in offered:
        is_right = reason is not Refusal.TYPES or type(kernel) not in right
        if reason is not None and kernel.name not in able and is_right:
            refused.setdefault(kernel.name, reason)
    return tuple(refused.items())


def _offered(node: Node, target: Target | None) -> tuple[Kernel, ...]:
    offered = BY_OPERATOR.get(type(node.op))
    if offered is None:  # an operator of the user
        offered = kernels_of_record(record_of(node.op))
    return tuple(k for k in offered if target is None or k.is_for(target))
