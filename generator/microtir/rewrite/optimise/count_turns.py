"""Notes how often nodes in loops are computed, so that their costs count that often."""

from __future__ import annotations

from dataclasses import replace

from microtir.graph.ir import Graph, Node
from microtir.graph.rewriting import Rewrite, with_nodes
from microtir.operators.control.definition import EndRepeat, Repeat


class CountTurns(Rewrite):
    """Multiplies the turns of the loops around each node: as many as are proven, guards or not."""

    def __call__(self, graph: Graph) -> Graph:
        nodes: list[Node] = []
        around = [1]
        for node in graph.nodes:
            if isinstance(node.op, EndRepeat):
                around.pop()
            turns = around[-1]
            if isinstance(node.op, Repeat):
                around.append(turns * node.op.turns)
            is_known = node.source.turns == turns
            nodes.append(
                node if is_known else replace(node, source=replace(node.source, turns=turns))
            )
        return with_nodes(graph, nodes)
