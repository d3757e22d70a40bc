"""Results that all compilations of one model share, since no limit changes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from microtir.graph.ir import Graph, Node
from microtir.graph.rewriting import GraphPass
from microtir.lowering.function_lowering import FunctionLowering
from microtir.plan import NestSimulations, alternatives, plan
from microtir.plan.ir import Candidate, Plan, PlanConstraints, Refusal
from microtir.plan.measured import Measured
from microtir.rewrite.checked import rewritten

Observer = Callable[[str, object], None]
"""Function called after each stage with its name and its result; for timing and dumps."""


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """The results that all compilations of one call of `lower` share, since no limit changes them.

    Args:
        name: of the entry function.
        planned: plans the graph, or a variant that does the same in less memory: in another
            order, or cut into bands; for equal constraints once.
        lowering: rewrites functions, those that are alike once.
        see: is told of each stage.
        refused: gives the kernels that cannot compute a node, and why.
    """

    name: str
    planned: Callable[[PlanConstraints], Plan]
    lowering: FunctionLowering
    see: Observer
    refused: Callable[[Node], tuple[tuple[str, Refusal], ...]]

    @staticmethod
    def of(
        graph: Graph, name: str, lowering: FunctionLowering, see: Observer,
        records: Measured | None, candidates: Callable[[Node], tuple[Candidate, ...]],
        refused: Callable[[Node], tuple[tuple[str, Refusal], ...]],
    ) -> Shared:  # fmt: skip
        """Find the kernels of a graph, and the variants that may be planned instead of it."""
        config = lowering.config

        @cache
        def offered(node: Node) -> tuple[Candidate, ...]:
            # Measured costs count where they are known.
            known = candidates(node)
            return known if records is None else records.applied(node, known)

        simulations = NestSimulations()
        options = config.pass_config

        def variant(graph: Graph, graph_pass: GraphPass) -> Graph:
            return rewritten(graph, (graph_pass,), options, lowering.extra.after)

        whole, *others = alternatives(
            graph, offered, variant, config.optimize, reorder=options.reorder,
            percent=options.recompute, workspace_io=options.use_workspace_io,
            simulations=simulations,
        )  # fmt: skip

        @cache
        def planned(limits: PlanConstraints) -> Plan:
            return plan(
                whole, offered, limits, workspace_io=options.use_workspace_io, others=others,
                simulations=simulations,
            )  # fmt: skip

        return Shared(name, planned, lowering, see, refused)
