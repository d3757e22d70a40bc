"""Copies the rows that cannot lie where they are joined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from microtir.graph.ir import Graph, Node, Tensor
from microtir.graph.rewriting import Rewrite, with_nodes
from microtir.operators.state.definition import Assign, JoinRows
from microtir.rewrite.facts.states import has_own_memory


class PlaceRows(Rewrite):
    """Makes every input of a JoinRows one that is computed right there, or a copy.

    The caller's memory, constants, views of other memory and what is joined elsewhere, too, are
    copied; what else computes rows writes them where they are joined.
    """

    def __call__(self, graph: Graph) -> Graph:
        nodes: list[Node] = []
        joined: set[Tensor] = set()
        for node in graph.nodes:
            if isinstance(node.op, JoinRows):
                copies = {
                    place: _copy(node, tensor)
                    for place, tensor in enumerate(node.inputs)
                    if tensor in {*joined, *node.inputs[:place]}
                    or not has_own_memory(graph, tensor, node)
                }
                nodes += copies.values()
                joined.update(node.inputs)
                node = _joining(node, copies)
            nodes.append(node)
        return with_nodes(graph, nodes)


def _copy(join: Node, tensor: Tensor) -> Node:
    """Return a node that copies rows to where they are joined."""
    copy = Tensor(f"{tensor.name}_placed", tensor.type)
    return Node(Assign(), (tensor,), (copy,), copy.name, replace(join.source, operator="ASSIGN"))


def _joining(join: Node, copies: Mapping[int, Node]) -> Node:
    """Return the node with copies in the place of some of its inputs."""
    if not copies:
        return join
    inputs = (copies[n].output if n in copies else t for n, t in enumerate(join.inputs))
    return replace(join, inputs=tuple(inputs))
