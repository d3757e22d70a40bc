"""Walk over the graphs of a file, those inside of nodes among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx


def graphs_in(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs that the attributes of a node hold."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def graphs_of(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield a graph, and all graphs inside of its nodes."""
    yield graph
    for node in graph.node:
        for inner in graphs_in(node):
            yield from graphs_of(inner)
