"""A compiled model: what `lower` gives, and what reports, searches and the command line read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from microtir.graph.ir import Graph
from microtir.measure import Figures
from microtir.plan.decisions import Decision, DeclinedTrade
from microtir.plan.ir import Plan, PlannedOperator
from microtir.tir.ir import PrimFunc
from microtir.tir.memory_plan import ConstantPlan, MemoryPlan


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Everything that was decided about a model, complete and verified.

    Args:
        graph: what was planned: after the passes, in the order and the bands of the plan.
        plan: kernel, layout and group of each operator.
        functions: of the layers, in the order of the plan; each is printed as it is here.
        main: calls them on the memory that they have.
        named_main: the same before placement, when buffers still had names; for reports.
        placement: where the buffers lie.
        constants: where the arrays of constants lie.
        figures: bytes of flash and stack.
        decisions: why each layer is what it is, by the name of its first function.
        declined: what it could save and does not, since that costs too much.
    """

    graph: Graph
    plan: Plan
    functions: tuple[PrimFunc, ...]
    main: PrimFunc
    named_main: PrimFunc
    placement: MemoryPlan
    constants: ConstantPlan
    figures: Figures
    decisions: Mapping[str, Decision]
    declined: DeclinedTrade | None = None

    def functions_of_operators(self) -> dict[PlannedOperator, tuple[PrimFunc, ...]]:
        """Return the functions of each operator with code: one, or a second that finishes it."""
        functions: dict[PlannedOperator, tuple[PrimFunc, ...]] = {}
        remaining = iter(self.functions)
        for op in self.plan.operators:
            if not op.candidate.is_view:
                count = 2 if op.candidate.accumulates else 1
                functions[op] = tuple(next(remaining) for _ in range(count))
        return functions
