"""Runs operators in another order, in which less lives at once."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.graph.ir import Graph
from microtir.graph.rewriting import Rewrite, with_nodes


@dataclass(frozen=True, slots=True)
class Reorder(Rewrite):
    """Runs operators in another order, where less lives at once or more of them can stream.

    Args:
        order: numbers of the nodes; None leaves them as they are.
    """

    order: tuple[int, ...] | None = None

    def __call__(self, graph: Graph) -> Graph:
        return with_nodes(graph, (graph.nodes[n] for n in self.order)) if self.order else graph
