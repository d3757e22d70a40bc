"""Lets the application hand over inputs and take outputs row by row."""

from __future__ import annotations

from dataclasses import dataclass, replace

from microtir.graph.ir import Graph, Node, SourceLocation, Tensor
from microtir.graph.operator import Operator
from microtir.graph.rewriting import Rewrite, substitute
from microtir.operators.streaming.definition import ReadRows, WriteRows


@dataclass(frozen=True, slots=True)
class RowPorts(Rewrite):
    """Puts an operator between each input, or output, and the rest of the graph.

    To planning it is an operator like any other: where its neighbours stream, the tensor between
    them is a ring of a few rows, and what the application sees is no tensor but calls.
    """

    inputs: bool
    outputs: bool

    def __call__(self, graph: Graph) -> Graph:
        read = [t for t in graph.arguments if self.inputs]
        written = [t for t in graph.results if self.outputs]
        tensors, nodes = ({t.name for t in graph.tensors()}, {node.name for node in graph.nodes})
        inner = {t: Tensor(_fresh(f"{t.name}_rows", tensors), t.type) for t in (*read, *written)}
        names = {t: _fresh(t.name, nodes) for t in inner}
        file = graph.nodes[0].source.file if graph.nodes else ""
        return (
            replace(
                graph,
                nodes=(
                    *(_node(ReadRows(), t, inner[t], names[t], file) for t in read),
                    *(substitute(node, inner) for node in graph.nodes),
                    *(_node(WriteRows(), inner[t], t, names[t], file) for t in written),
                ),
            )
            if inner
            else graph
        )


def _fresh(name: str, taken: set[str]) -> str:
    """Return a name like this one that is new; it is taken from now on."""
    while name in taken:
        name += "_rows"
    taken.add(name)
    return name


def _node(op: Operator, source: Tensor, target: Tensor, name: str, file: str) -> Node:
    return Node(op, (source,), (target,), name, SourceLocation(file, -1, op.name.upper()))
