"""Layouts of edges: which tensors may lie as planes, and candidates that agree with a choice.

A layout belongs to the edge: what is written as planes is read as planes.  So an edge has a choice
where one operator alone reads a tensor, nobody outside sees it, and producer and reader both know
another layout than NHWC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from microtir.graph.ir import Graph, Node, Tensor
from microtir.plan.ir import Candidate, Layout, LayoutKind, Planes

Kinds = Mapping[Tensor, LayoutKind]
"""Layouts of the tensors that are not NHWC."""

Offered = Mapping[Node, Sequence[Candidate]]
"""The legal candidates of each node."""


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """A tensor between two operators that has a choice; `planes` by layout, NHWC left out."""

    tensor: Tensor
    producer: Node
    reader: Node
    planes: Mapping[LayoutKind, Planes]


def edges_of(graph: Graph, offered: Offered) -> tuple[Edge, ...]:
    """Return the edges of a graph that have a choice, in graph order."""
    readers: dict[Tensor, list[Node]] = {}
    for node in graph.nodes:
        for tensor in node.inputs:
            readers.setdefault(tensor, []).append(node)
    edges = []
    for node in graph.nodes:
        for tensor in node.outputs:
            reading = readers.get(tensor, [])
            if len(reading) == 1 and tensor not in graph.outputs and len(node.outputs) == 1:
                (reader,) = reading
                read = {
                    kind: c.planes
                    for c in offered[reader]
                    for kind in c.input_layouts
                    if c.planes is not None
                }
                written = {kind for c in offered[node] for kind in c.output_layouts}
                both = {kind: planes for kind, planes in read.items() if kind in written}
                if both:
                    edges.append(Edge(tensor, node, reader, both))
    return tuple(edges)


def possible(
    node: Node, candidates: Sequence[Candidate], edges: Sequence[Edge]
) -> tuple[Candidate, ...]:
    """Return the candidates of a node that agree with some choice for its edges."""
    known: dict[Tensor, set[LayoutKind]] = {edge.tensor: set(edge.planes) for edge in edges}
    plain = {LayoutKind.NHWC}

    def may(tensors: Sequence[Tensor], kinds: Sequence[LayoutKind]) -> bool:
        pairs = zip(tensors, kinds, strict=True)
        return all(kind in plain | known.get(tensor, plain) for tensor, kind in pairs)

    return tuple(
        c
        for c in candidates
        if may(node.activations, c.input_layouts) and may(node.outputs, c.output_layouts)
    )


def uniform(edges: Sequence[Edge]) -> tuple[Kinds, ...]:
    """Return one choice for each layout but NHWC: all edges that know it have it."""
    kinds = dict.fromkeys(kind for edge in edges for kind in edge.planes)
    return tuple({e.tensor: kind for e in edges if kind in e.planes} for kind in kinds)


def agreeing(node: Node, candidates: Sequence[Candidate], kinds: Kinds) -> tuple[Candidate, ...]:
    """Return the candidates that read and write a node's tensors as they lie."""
    read = tuple(kinds.get(t, LayoutKind.NHWC) for t in node.activations)
    written = tuple(kinds.get(t, LayoutKind.NHWC) for t in node.outputs)
    return tuple(c for c in candidates if (c.input_layouts, c.output_layouts) == (read, written))


def layouts_of(tensors: Sequence[Tensor], edges: Sequence[Edge], kinds: Kinds) -> dict[
    Tensor, Layout
]:  # fmt: skip
    """Return layouts of whole tensors."""
    layouts = {t: Layout.whole(t.type) for t in tensors}
    for edge in edges:
        kind = kinds.get(edge.tensor, LayoutKind.NHWC)
        if kind is not LayoutKind.NHWC:
            rows = edge.tensor.type.rows
            layouts[edge.tensor] = Layout(kind, rows, edge.planes[kind])
    return layouts
