"""Describes the nodes of a graph for tools: which layers each runs, and what one run of it gave."""

from __future__ import annotations

import binascii
from dataclasses import dataclass

from microtir.artifact.contents import Contents
from microtir.codegen import Metadata
from microtir.support.reading import WrongDataError, parse_json


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node of the table of calls; `layers` are positions in the metadata of the artifact."""

    name: str
    layers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NodeTensor:
    """A tensor that a node wrote, as it lies in memory."""

    dtype: str
    data: bytes

    @property
    def checksum(self) -> int:
        """Return the CRC that `microtir_crc32` gives for it."""
        return binascii.crc32(self.data)


@dataclass(frozen=True, slots=True)
class NodeResult:
    """One run of a node; `ticks` are those of the clock of whoever ran it."""

    name: str
    ticks: int
    tensors: tuple[NodeTensor, ...]


def graph_nodes(artifact: Contents) -> tuple[GraphNode, ...]:
    """Return the nodes of an artifact for the graph executor, in order of execution."""
    return nodes_of(artifact.metadata, artifact.source(graph_file(artifact.metadata)))


def graph_file(metadata: Metadata) -> str:
    """Return the file of the nodes beside the metadata, for an executor of graphs."""
    return f"{metadata.module_name}_graph.json"


def nodes_of(metadata: Metadata, graph: str | None) -> tuple[GraphNode, ...]:
    """Return the nodes of a graph's text; without a graph every layer is one.

    Raises:
        WrongDataError: the text is no graph of the layers.
    """
    layers = metadata.layers
    if graph is None:
        return tuple(GraphNode(layer.name, (i,)) for i, layer in enumerate(layers))
    positions = {layer.function: i for i, layer in enumerate(layers)}
    nodes = parse_json(graph)
    try:
        return tuple(
            GraphNode(str(node["name"]), tuple(positions[f] for f in node["attrs"]["layers"]))
            for node in nodes["nodes"]
            if node["op"] == "tvm_op"
        )
    except (KeyError, TypeError) as error:
        raise WrongDataError(f"it is not a graph of the layers: {error!r}") from None
