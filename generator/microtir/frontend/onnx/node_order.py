"""Bring the nodes of a graph into an order in which each finds its inputs."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TYPE_CHECKING

from microtir.frontend.onnx.inner_graphs import graphs_in

if TYPE_CHECKING:
    import onnx


def computed_order(nodes: Sequence[onnx.NodeProto]) -> list[int]:
    """Return the places of nodes, each behind those whose results it takes.

    Of several orders it is the one nearest to that of the file: nodes that are in order already
    stay where they are.  Nodes that wait for each other come last, as they stand.
    """
    makers = {name: place for place, node in enumerate(nodes) for name in node.output if name}
    waits = [_makers_of(node, makers) - {place} for place, node in enumerate(nodes)]
    takers: list[list[int]] = [[] for _ in nodes]
    for place, needed in enumerate(waits):
        for maker in needed:
            takers[maker].append(place)
    left = [len(needed) for needed in waits]
    ready = [place for place, count in enumerate(left) if count == 0]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        place = heapq.heappop(ready)
        order.append(place)
        for taker in takers[place]:
            left[taker] -= 1
            if left[taker] == 0:
                heapq.heappush(ready, taker)
    return order + [place for place, count in enumerate(left) if count > 0]


def _makers_of(node: onnx.NodeProto, makers: dict[str, int]) -> set[int]:
    """Return the places of the nodes that a node and the graphs inside of it take results of."""
    needed = {makers[name] for name in node.input if name in makers}
    for graph in graphs_in(node):
        needed |= {makers[output.name] for output in graph.output if output.name in makers}
        for inner in graph.node:
            needed |= _makers_of(inner, makers)
    return needed
