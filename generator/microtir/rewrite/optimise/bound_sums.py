"""Proves that sums fit their accumulators."""

from __future__ import annotations

from dataclasses import replace

from microtir.graph.ir import Graph, Node
from microtir.graph.rewriting import Rewrite, with_nodes
from microtir.rewrite.facts.channel_ranges import channel_ranges
from microtir.rewrite.facts.sums import sums_of


class BoundSums(Rewrite):
    """Notes at every node which sums its kernels may meet, from what its inputs can hold.

    Runs last: a later rewrite of a node's constants or inputs would make the note wrong.
    """

    def __call__(self, graph: Graph) -> Graph:
        ranges = channel_ranges(graph)

        def noted(node: Node) -> Node:
            known = [ranges.get(tensor) for tensor in node.inputs]
            sums = sums_of(node, [None if r is None else (r.low, r.high) for r in known])
            return node if sums == node.sums else replace(node, sums=sums)

        return with_nodes(graph, map(noted, graph.nodes))
