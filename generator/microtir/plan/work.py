"""Costs of operators and plans, calls of functions included, and costs that no plan changes."""

from __future__ import annotations

from types import MappingProxyType

from microtir.config.enums import Measure
from microtir.graph.ir import Graph, Node
from microtir.plan.ir import Calls, Candidate, Plan, PlannedOperator

# Of a call of a layer function: its arguments, registers saved, loops set up.
_CALL = MappingProxyType({Measure.INSTRUCTIONS: 40, Measure.CYCLES: 60})


def work(node: Node, candidate: Candidate, measure: Measure, *, rows_per_call: int = 0) -> int:
    """Return what a node costs for all images; otherwise as `image_work`."""
    return image_work(node, candidate, measure, rows_per_call=rows_per_call) * node.source.images


def image_work(
    node: Node,
    candidate: Candidate,
    measure: Measure,
    *,
    rows_per_call: int = 0,
    alone: bool | None = None,
) -> int:
    """Return what a node costs for one image and in all turns of a loop, the calls included.

    Kernels are ranked by it: a byte of code is worth as many instructions of an image whatever the
    batch, so that a batch is computed by the kernels of one image.

    Args:
        node: what is computed.
        candidate: by what.
        measure: what it is counted in.
        rows_per_call: rows of a call, 1 or 2; 0 for all of them.
        alone: no other operator runs with it; None where the candidate says so itself.
    """
    count = 0 if candidate.is_view else 1
    if rows_per_call:
        steps = (node.inputs if candidate.accumulates else node.outputs)[0].type.rows
        count = -(-steps // rows_per_call)
    calls = Calls(rows_per_call, candidate.calls.alone if alone is None else alone)
    once = candidate.cost(calls).of(measure) + _CALL[measure] * count
    return once * node.source.turns


def plan_work(plan: Plan) -> int:
    """Return what all calls of a plan cost, in its measure."""
    return sum(
        work(
            op.node, op.candidate, plan.constraints.measure,
            rows_per_call=group.nest.rows_per_call if group.nest and _by_rows(op) else 0,
        )
        for group in plan.groups
        for op in group.operators
    )  # fmt: skip


def bytes_apart(graph: Graph, *, workspace_io: bool) -> int:
    """Return the bytes of RAM that no plan changes: states, and ports outside the workspace."""
    states = sum(state.turns * state.type.bytes for state in graph.states)
    if workspace_io:
        return states
    return states + sum(t.type.bytes for t in dict.fromkeys((*graph.arguments, *graph.results)))


def _by_rows(op: PlannedOperator) -> bool:
    return op.candidate.takes_row_range or op.candidate.accumulates
