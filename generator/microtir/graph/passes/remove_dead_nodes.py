"""Removes nodes that no output depends on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from microtir.graph.ir import Graph, Node
from microtir.graph.passes.rewrite import with_nodes


@dataclass(frozen=True, slots=True)
class RemoveDeadNodes:
    """Keeps the nodes from which a graph output can be reached, and all inputs of the graph."""

    name: ClassVar[str] = "remove_dead_nodes"

    def __call__(self, graph: Graph) -> Graph:
        needed = set(graph.outputs)
        live: list[Node] = []
        for node in reversed(graph.nodes):
            if not needed.isdisjoint(node.outputs):
                live.append(node)
                needed.update(node.inputs)
        return with_nodes(graph, reversed(live))
