"""Makes metadata.json of an archive in Model Library Format 7, and what microtir adds to it.

The keys are those that microTVM wrote, for tools that read them. Sizes of inputs and outputs are
exact, shapes and quantisation stand beside them, operators are listed in the order of their calls,
and everything that `metadata.json` of exported sources says is below the key "microtir".
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone

from microtir.artifact.contents import Contents
from microtir.artifact.joint_memory import ConcurrentModules, joint_workspace
from microtir.artifact.mlf.layout import (
    RUNTIME,
    VERSION,
    graph_file,
    has_runtime,
    is_model,
    module_name,
)
from microtir.codegen.metadata import LayerData, Metadata, ParameterData, PortData
from microtir.errors import UsageError

CPU = 1  # kDLCPU of DLPack: the number of a processor's device
EXTRA = "microtir"  # the key of everything that version 7 has no place for
_LAYOUT_VERSION = 1

Json = dict[str, object]


def archive_metadata(
    artifacts: Sequence[Contents],
    layouts: Sequence[Mapping[str, str]],
    timestamp: datetime | None,
    concurrent: ConcurrentModules,
) -> Json:
    """Return the content of metadata.json.

    Args:
        artifacts: what the archive holds: models, or one user's program.
        layouts: of each artifact the paths of its sources in the archive.
        timestamp: time of the export; None for the start of the epoch, which is the same always.
        concurrent: which models may run at the same time.
    """
    written = _time_text(timestamp)
    if not is_model(artifacts[0]):
        return {"version": VERSION, **_operators(artifacts[0], layouts[0], written)}
    return {
        "version": VERSION,
        "modules": {
            module_name(artifact): _model(artifact, layout, written)
            for artifact, layout in zip(artifacts, layouts, strict=True)
        },
        EXTRA: {
            "layout_version": _LAYOUT_VERSION,
            "joint_workspace": _joint(artifacts, concurrent),
        },
    }


def _joint(artifacts: Sequence[Contents], concurrent: ConcurrentModules) -> Json:
    pools = joint_workspace(artifacts, concurrent)
    return {
        "together": concurrent.sorted(),
        "size_bytes": sum(pool.size_bytes for pool in pools),
        "alignment": max((pool.alignment for pool in pools), default=1),
        "pools": [
            {
                "name": pool.name,
                "size_bytes": pool.size_bytes,
                "alignment": pool.alignment,
                "offsets": dict(pool.offsets),
            }
            for pool in pools
        ],
    }


def _time_text(timestamp: datetime | None) -> str:
    if timestamp is None:
        return "1970-01-01 00:00:00Z"
    if timestamp.tzinfo is None:
        raise UsageError(
            "the timestamp has no time zone",
            where="export_model_library_format(timestamp)",
            fix="use datetime.now(timezone.utc)",
        )
    return timestamp.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%SZ")


def _common(artifact: Contents, layout: Mapping[str, str], written: str, style: str) -> Json:
    config = artifact.module.require_config("export")
    result: Json = {
        "model_name": module_name(artifact),
        "export_datetime": written,
        "style": style,
        "target": [str(target) for target in config.targets],
    }
    if has_runtime(artifact):
        result["external_dependencies"] = [
            {
                "short_name": "microtir_runtime_crt",
                "url": f"./{RUNTIME}",
                "url_type": "mlf_path",
                "version_spec": artifact.metadata.generator.split()[-1],
            }
        ]
    result[EXTRA] = {"metadata": artifact.metadata.as_json(), "layout": dict(layout)}
    return result


def _model(artifact: Contents, layout: Mapping[str, str], written: str) -> Json:
    config = artifact.module.require_config("export")
    return {
        **_common(artifact, layout, written, "full-model"),
        "executors": [config.executor.name],
        "memory": {**_model_memory(artifact.metadata), **_storage(artifact)},
    }


def _storage(artifact: Contents) -> Json:
    """Return sizes of the graph executor's storage: each of its own tensors, by number."""
    path = graph_file(module_name(artifact))
    texts = [file.text for file in artifact.sources if file.path == path]
    if not texts:
        return {}
    graph = json.loads(texts[0])
    attrs = {name: values[1] for name, values in graph["attrs"].items()}
    inputs = [n for n in graph["arg_nodes"] if attrs["place"][graph["node_row_ptr"][n]] == "input"]
    names = {graph["node_row_ptr"][n]: graph["nodes"][n]["name"] for n in inputs}
    rows: dict[int, Json] = {}
    for entry, number in enumerate(attrs["storage_id"]):
        size = math.prod(attrs["shape"][entry]) * element_bytes(attrs["dltype"][entry])
        row = rows.setdefault(number, {"storage_id": number, "size_bytes": 0})
        row["size_bytes"] = max(size, int(str(row["size_bytes"])))
        if entry in names:
            row["input_binding"] = names[entry]
    return {"sids": [rows[number] for number in sorted(rows)]}


def _model_memory(facts: Metadata) -> Json:
    memory = facts.memory
    assert memory is not None  # it is a model
    ports = facts.ports
    main = {
        "device": CPU,
        "workspace_size_bytes": memory.workspace_size,
        "workspace_pools": [
            {"pool_name": pool.name, "allocated_size": pool.size} for pool in memory.pools
        ],
        "constants_size_bytes": facts.weights_bytes,
        "io_size_bytes": sum(_own_bytes(port) for port in ports),
        **_state(facts),
        "inputs": {port.name: _port(port) for port in ports if port.kind == "input"},
        "outputs": {port.name: _port(port) for port in ports if port.kind == "output"},
    }
    operators = [_layer(layer) for layer in facts.layers]
    return {"functions": {"main": [main], "operator_functions": operators}}


def _state(facts: Metadata) -> Json:
    """Return what outlives a run: the bytes of its struct, and its members."""
    if facts.state is None:
        return {}
    members = {
        member.name: {"size": member.bytes, "dtype": member.dtype, "shape": member.shape}
        for member in facts.state.members
    }
    return {"state_size_bytes": facts.state.size, "state": members}


def _own_bytes(port: PortData) -> int:
    """Return the memory of a tensor outside of the workspace: none if it is passed by rows."""
    return port.bytes if port.offset is None and port.row_bytes is None else 0


def _port(port: PortData) -> Json:
    return {
        "size": port.bytes,
        "dtype": port.dtype,
        "shape": port.shape,
        "quantization": asdict(port.quantization) if port.quantization else None,
        "member": port.member,
    }


def _layer(layer: LayerData) -> Json:
    """Return a layer's row of the table: microTVM's keys, then what the layer is."""
    return {
        "function_name": layer.function,
        "workspace": [{"device": CPU, "workspace_size_bytes": layer.scratch_bytes}],
        "constants_size_bytes": layer.weights_bytes,
        "name": layer.name,
        "operator": layer.operator,
        "index": layer.index,
        "macs": layer.macs,
        "macs_executed": layer.macs_executed,
        "macs_recomputed": layer.macs_recomputed,
        "tensors": layer.facts,
    }


def _operators(artifact: Contents, layout: Mapping[str, str], written: str) -> Json:
    """Return the style "operator": functions, whose buffers replace a model's memory."""
    return {
        **_common(artifact, layout, written, "operator"),
        "executors": [],
        "memory": {
            function.function: [_buffer(p) for p in function.parameters]
            for function in artifact.metadata.functions
        },
    }


def element_bytes(dtype: str) -> int:
    """Return the bytes of one element; a bool, whose name has no number, takes one."""
    return int("".join(c for c in dtype if c.isdigit()) or 8) // 8


def _buffer(parameter: ParameterData) -> Json:
    """Describe a parameter; an extent that is another parameter has no number and no size."""
    elements = 1
    for extent in parameter.shape:
        elements *= extent if isinstance(extent, int) else 0
    return {
        "size_bytes": elements * element_bytes(parameter.dtype) or None,
        "shape": parameter.shape,
        "dtype": parameter.dtype,
        "input_binding": parameter.name,
    }
