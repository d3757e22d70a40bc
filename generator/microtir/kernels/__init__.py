"""Operators to candidates, and a planned operator to its PrimFunc."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from microtir.config.compilation import CompilationConfig
from microtir.config.enums import Measure, Optimize
from microtir.graph.ir import Node, Tensor
from microtir.graph.operator import Operator
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.provenance import function_names, origin_of
from microtir.kernels.table import KERNELS, kernel_of, kernels_of, refusals_of
from microtir.operators.common.rows import Extents
from microtir.operators.streaming.definition import ReadRows, WriteRows
from microtir.plan.ir import Candidate, Layout, PlannedOperator, Refusal
from microtir.tir.function import LayerName, PlaneRows, RowPort
from microtir.tir.ir import PrimFunc

__all__ = [
    "candidates",
    "emit",
    "emit_finish",
    "function_names",
    "kernel_names",
    "least_cost",
    "refusals",
]


def least_cost(offered: Iterable[Candidate], measure: Measure) -> int:
    """Return what the cheapest kernel that reads and writes NHWC takes, in a measure."""
    plain = (c for c in offered if c.is_plain)
    return min((c.cost().of(measure) for c in plain), default=0)


def candidates(node: Node, config: CompilationConfig) -> tuple[Candidate, ...]:
    """Return the kernels that can compute a node on the configured target.

    Emits TIR to count it alone: of loop nests, and where flash has a budget of functions that are
    written as a whole, by a user or for an operator, since nothing else tells of their constants.
    """
    target = config.primary_target()
    kernels = kernels_of(node, target)
    if config.keeps_layouts():
        kernels = tuple(k for k in kernels if k.is_plain)
    offered = (kernel for kernel in kernels if _is_offered(kernel, config))
    has_budget = config.budget.flash is not None
    return tuple(kernel.candidate(node, target, counts_constants=has_budget) for kernel in offered)


def refusals(node: Node, config: CompilationConfig) -> tuple[tuple[str, Refusal], ...]:
    """Return the kernels for the configured target that cannot compute a node, and why."""
    left_out = {kernel.name for kernel in KERNELS if not _is_offered(kernel, config)}
    refused = refusals_of(node, config.primary_target())
    return tuple((name, reason) for name, reason in refused if name not in left_out)


def _is_offered(kernel: Kernel, config: CompilationConfig) -> bool:
    if not kernel.is_for_least_ram and config.optimize is Optimize.RAM_LEAST:
        return False
    return config.budget.flash is not None or not kernel.is_for_little_flash


def kernel_names() -> frozenset[str]:
    """Return the names of all kernels, whatever the target."""
    return frozenset(kernel.name for kernel in KERNELS)


def emit(operator: PlannedOperator, layouts: Mapping[Tensor, Layout], name: LayerName) -> PrimFunc:
    """Emit the PrimFunc of a planned operator.

    Args:
        operator: with a candidate that `candidates` offered; not a VIEW.
        layouts: of every tensor that is not constant.
        name: of the function.

    Returns:
        Parameters: one buffer per input that is not constant (an input read twice counts once),
        one per output, one of scratch if the candidate asks for some, then y0 and y1 if it takes a
        row range: rows [y0, y1) of the output are computed.
    """
    node, chosen = operator.node, operator.candidate
    layer = Layer.of(node, layouts, chosen.takes_row_range, chosen.calls.rows)
    return replace(
        kernel_of(node, chosen).emit(layer, str(name)),
        origin=replace(origin_of(node), is_partial=chosen.accumulates, name=name),
        rows=layer.row_accesses(chosen.windows),
        row_port=_PORTS.get(type(node.op)),
        plane_rows=_plane_rows(node, layouts),
    )


def _plane_rows(node: Node, layouts: Mapping[Tensor, Layout]) -> PlaneRows | None:
    """Return what tells the values of an output from the borders of its planes, if it is planes."""
    planes = layouts[node.outputs[0]].planes
    if planes is None:
        return None
    type_ = node.output.type
    return PlaneRows(planes.before, Extents.of(type_).width, type_.dtype)


_PORTS: Mapping[type[Operator], RowPort] = MappingProxyType({
    ReadRows: RowPort.INPUT,
    WriteRows: RowPort.OUTPUT,
})  # fmt: skip


def emit_finish(
    operator: PlannedOperator, layouts: Mapping[Tensor, Layout], name: LayerName
) -> PrimFunc:
    """Emit the second function of an operator whose candidate accumulates.

    Returns:
        Parameters: the accumulators, which are the second parameter of what `emit` gives, and the
        output.
    """
    layer = Layer.of(operator.node, layouts, takes_row_range=False)
    function = kernel_of(operator.node, operator.candidate).finish(layer, str(name))
    # The multiply-accumulates are counted where they are done: in the other function.
    origin = replace(origin_of(operator.node), macs=0, macs_executed=0, macs_recomputed=0)
    return replace(function, origin=replace(origin, name=name))
