"""Defects of microTVM's executors and of the metadata about them: D5, D22."""

from __future__ import annotations

import ctypes
import json
import tarfile
from pathlib import Path
from typing import Any

import microtir
from microtir import CompilationConfig, Executor
from tests.support.calling import compiled, make_runtime
from tests.support.small_models import branching_graph, module_of, tiny_graph


def test_d5_storage_has_the_size_of_its_tensors(tmp_path: Path) -> None:
    """Shapes were looked up by the number of the storage instead of that of the node."""
    config = CompilationConfig(targets="c", executor=Executor("graph", {"link-params": True}))
    artifact = microtir.build(module_of(branching_graph()), config)
    path = microtir.export_model_library_format(artifact, tmp_path / "model.tar")
    with tarfile.open(path) as tar:
        streams = [tar.extractfile(f"./{name}") for name in (
            "metadata.json", "executor-config/graph/default.graph")]  # fmt: skip
        metadata, graph = (json.load(stream) for stream in streams if stream is not None)
    module = metadata["modules"]["default"]
    assert module["executors"] == ["graph"]
    sizes = {row["storage_id"]: row["size_bytes"] for row in module["memory"]["sids"]}
    attrs: dict[str, Any] = {name: values[1] for name, values in graph["attrs"].items()}
    assert sizes.keys() == set(attrs["storage_id"])
    for number, shape, dtype in zip(
        attrs["storage_id"], attrs["shape"], attrs["dltype"], strict=True
    ):
        elements = 1
        for extent in shape:
            elements *= extent
        assert sizes[number] >= elements * {"int8": 1, "int32": 4}[dtype]
    model = artifact.module.model
    assert model is not None
    bound = {row["input_binding"]: row["size_bytes"] for row in module["memory"]["sids"]
             if "input_binding" in row}  # fmt: skip
    assert bound == {port.name: port.type.bytes for port in model.inputs}


def test_d22_a_call_of_the_wrong_interface_is_refused(tmp_path: Path) -> None:
    """An executor read metadata that another interface has not; here arguments are checked."""
    config = CompilationConfig(targets="c", executor=Executor("aot", {"interface-api": "packed"}))
    artifact = microtir.build(module_of(tiny_graph()), config)
    assert not compiled(artifact, tmp_path / "out", make_runtime(tmp_path))
    run = ctypes.CDLL(str(tmp_path / "out" / "program.so")).default_run
    run.restype = ctypes.c_int32
    pointers, kinds = (ctypes.c_void_p * 3)(), (ctypes.c_int32 * 3)(1, 1, 1)
    # Nothing, too few, and values that are no tensors, as the c interface would pass them.
    assert run(None, None, 0, None, None, None) < 0
    assert run(pointers, kinds, 2, None, None, None) < 0
    assert run(pointers, kinds, 3, None, None, None) < 0
