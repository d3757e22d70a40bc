"""Removes nodes and states that no result depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from microtir.graph.ir import Graph, Node, State, Tensor
from microtir.graph.rewriting import Rewrite, with_nodes


class RemoveDeadNodes(Rewrite):
    """Keeps the nodes from which a result can be reached, in this run or by a state in a later one.

    All arguments of the graph stay.
    """

    def __call__(self, graph: Graph) -> Graph:
        states: tuple[State, ...] = ()
        while True:
            nodes, needed = _live(graph, (*graph.results, *(state.after for state in states)))
            read = tuple(state for state in graph.states if state.before in needed)
            if read == states:
                break
            states = read
        if states != graph.states:
            graph = replace(
                graph,
                inputs=(*graph.arguments, *(state.before for state in states)),
                outputs=(*graph.results, *(state.after for state in states)),
                states=states,
            )
        return with_nodes(graph, nodes)


def _live(graph: Graph, outputs: Sequence[Tensor]) -> tuple[tuple[Node, ...], set[Tensor]]:
    """Return the nodes that outputs depend on, and all that these read."""
    needed = set(outputs)
    live: list[Node] = []
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outputs):
            live.append(node)
            needed.update(node.inputs)
    return tuple(reversed(live)), needed
