"""What the graph passes share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import ClassVar, Protocol

from microtir.graph.ir import Graph, Node, Tensor


class GraphPass(Protocol):
    """A rewrite: gives an equivalent graph, the same object if there is nothing to do."""

    name: ClassVar[str]

    def __call__(self, graph: Graph) -> Graph: ...


def with_nodes(graph: Graph, nodes: Iterable[Node]) -> Graph:
    """The graph with other nodes; itself if they are the same."""
    changed = tuple(nodes)
    return graph if changed == graph.nodes else replace(graph, nodes=changed)


def substitute(node: Node, tensors: Mapping[Tensor, Tensor]) -> Node:
    """The node with its inputs and outputs replaced; itself if none of them is."""
    inputs = tuple(tensors.get(tensor, tensor) for tensor in node.inputs)
    outputs = tuple(tensors.get(tensor, tensor) for tensor in node.outputs)
    if inputs == node.inputs and outputs == node.outputs:
        return node
    return replace(node, inputs=inputs, outputs=outputs)
