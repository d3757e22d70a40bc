"""Holds the result of a compilation, sources and facts about them, and exports it as files."""

from __future__ import annotations

from microtir.artifact.artifact import Artifact, ExportFormat
from microtir.artifact.footprint import Footprint, footprint
from microtir.artifact.joint_memory import ConcurrentModules, PoolShare, joint_pool, joint_workspace
from microtir.artifact.mlf.export import export_model_library_format
from microtir.artifact.mlf.reader import import_model_library_format, model_info
from microtir.artifact.nodes import (
    GraphNode,
    NodeResult,
    NodeTensor,
    graph_file,
    graph_nodes,
    nodes_of,
)
from microtir.artifact.rows import logical_rows
from microtir.artifact.sbom import SBOM_FILE, sbom_text
from microtir.artifact.sizes import read_metadata
from microtir.artifact.source_map import is_described, layer_text, layers_at, places_in
from microtir.codegen import METADATA_FILE, Metadata, SourceFile
from microtir.codegen.metadata import (
    ConstantPoolData,
    FunctionData,
    LayerData,
    MemoryData,
    OutputData,
    ParameterData,
    PoolData,
    PortData,
    StateData,
)
from microtir.codegen.printer.c_types import C_TYPES, runtime_dtype
from microtir.codegen.timing import causes_by_function

# `host` and `project` read artifacts, and the facts in them, without knowing codegen.
__all__ = [
    "C_TYPES",
    "METADATA_FILE",
    "SBOM_FILE",
    "Artifact",
    "ConcurrentModules",
    "ConstantPoolData",
    "ExportFormat",
    "Footprint",
    "FunctionData",
    "GraphNode",
    "LayerData",
    "MemoryData",
    "Metadata",
    "NodeResult",
    "NodeTensor",
    "OutputData",
    "ParameterData",
    "PoolData",
    "PoolShare",
    "PortData",
    "SourceFile",
    "StateData",
    "causes_by_function",
    "export_model_library_format",
    "footprint",
    "graph_file",
    "graph_nodes",
    "import_model_library_format",
    "is_described",
    "joint_pool",
    "joint_workspace",
    "layer_text",
    "layers_at",
    "logical_rows",
    "model_info",
    "nodes_of",
    "places_in",
    "read_metadata",
    "runtime_dtype",
    "sbom_text",
]
