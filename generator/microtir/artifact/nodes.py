"""The nodes of a graph as tools see them: which layers each runs, and what one run of it gave."""

from __future__ import annotations

import binascii
import json
from dataclasses import dataclass
from typing import Any

from microtir.artifact.artifact import Artifact


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
        """What `microtir_crc32` gives for it."""
        return binascii.crc32(self.data)


@dataclass(frozen=True, slots=True)
class NodeResult:
    """One run of a node; `ticks` are those of the clock of whoever ran it."""

    name: str
    ticks: int
    tensors: tuple[NodeTensor, ...]


def graph_nodes(artifact: Artifact) -> tuple[GraphNode, ...]:
    """The nodes of an artifact for the graph executor, in the order in which they run."""
    facts = artifact.metadata
    positions = {layer["function"]: i for i, layer in enumerate(facts["layers"])}
    graph: dict[str, Any] = json.loads(artifact.source(f"{facts['module_name']}_graph.json"))
    return tuple(
        GraphNode(node["name"], tuple(positions[f] for f in node["attrs"]["layers"]))
        for node in graph["nodes"]
        if node["op"] == "tvm_op"
    )
