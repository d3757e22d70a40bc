"""Inputs fed and outputs drained row by row: the same results, and no memory for them."""

from __future__ import annotations

import itertools
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import cffi
import numpy as np
import pytest

import microtir
from microtir import host
from microtir.artifact import Artifact
from microtir.config import CompilationConfig, Executor, Optimize, Runtime
from microtir.errors import ConfigError
from microtir.graph.ir import Graph
from microtir.operators.activations.definition import Relu
from tests.support.graphs import graph as make_graph
from tests.support.graphs import node, tensor
from tests.support.network import python_path
from tests.support.pages import ROOT, follow, shown
from tests.support.small_models import (
    mixed_graph,
    module_of,
    quantised_graph,
    reference_outputs,
    sample_inputs,
)
from tests.support.streams import Garden

BOTH = {"row-fed-inputs": True, "row-drained-outputs": True}


def built(graph: Graph, goal: Optimize, **options: object) -> Artifact:
    """A program, with all inputs and outputs by rows unless options say otherwise."""
    executor = Executor("aot", options or BOTH)
    config = CompilationConfig(targets="c", executor=executor, optimize=goal)
    return microtir.build(module_of(graph), config)


def workspace(artifact: Artifact) -> int:
    """Bytes that the application provides."""
    memory = artifact.metadata.memory
    assert memory is not None and memory.verified
    return memory.workspace_size


@pytest.mark.parametrize("goal", [Optimize.RAM_LEAST, Optimize.SPEED])
@pytest.mark.parametrize("model", [quantised_graph, mixed_graph, *range(3)])
def test_results_are_the_same(model: Any, goal: Optimize) -> None:
    """Random streams and small models, under sanitizers."""
    graph = Garden(model).graph(7) if isinstance(model, int) else model()
    inputs = sample_inputs(graph)
    expected = reference_outputs(graph, inputs)
    artifact = built(graph, goal)
    outputs = host.run_sanitized(artifact, inputs)
    assert expected and set(outputs) == set(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(outputs[name], array)


def test_names_that_models_have_already() -> None:
    """Converters call an operator like its output, and nothing keeps a tensor from ending so."""
    x, a, y = (tensor(name, (1, 2, 3, 1)) for name in ("x", "x_rows", "y"))
    nodes = [node(Relu(), [x], a), node(Relu(), [a], y)]
    called = [replace(n, name=name) for n, name in zip(nodes, ("x", "y"), strict=True)]
    model = make_graph(called, [x], [y])
    inputs = {"x": np.linspace(-1, 1, 6, dtype=np.float32).reshape(1, 2, 3, 1)}
    got = host.load(built(model, Optimize.RAM_LEAST), opt_level=0).run(inputs)["y"]
    np.testing.assert_array_equal(got, np.maximum(inputs["x"], 0))


def test_rows_come_once_and_ascend() -> None:
    """What the application sees: every row of every tensor once, in ascending order."""
    for seed in range(6):
        graph = Garden(seed, height=9).graph(6)
        artifact = built(graph, Optimize.RAM_LEAST)
        seen = calls_of(artifact)
        for port in artifact.metadata.ports:
            rows = seen[port.member]
            assert rows == sorted(set(rows))
            if port.kind == "output":
                assert rows == list(range(port.bytes // int(port.row_bytes or 0)))


def calls_of(artifact: Artifact) -> dict[str, list[int]]:
    """Run a model on rows of zeros and note which rows it asks for."""
    library = host.load(artifact, opt_level=0)._backend
    ffi: cffi.FFI = library._ffi  # type: ignore[attr-defined]
    seen: dict[str, list[int]] = {}
    alive = []
    structs = []
    for kind in ("input", "output"):
        struct = ffi.new(f"struct default_{kind}s *")
        for port in artifact.metadata.ports:
            if port.kind != kind:
                continue
            rows = seen.setdefault(port.member, [])

            def note(_context: object, row: int, _data: object, rows: list[int] = rows) -> None:
                rows.append(row)

            alive.append(ffi.callback("void (void *, int32_t, void *)", note))
            getattr(struct, port.member).move = alive[-1]
        structs.append(struct)
    memory = np.zeros(workspace(artifact) + 64, np.uint8)
    address = -(-memory.ctypes.data // 64) * 64
    run = library._library.default_run  # type: ignore[attr-defined]
    assert run(*structs, ffi.cast("void *", address)) == 0
    return seen


def test_an_input_by_rows_takes_a_few_rows() -> None:
    """A streamed input is a ring in the workspace: far less than the image."""
    less = 0
    for seed in range(6):
        graph = Garden(seed, height=24).graph(4)
        size = graph.inputs[0].type.bytes
        fed = built(graph, Optimize.RAM_LEAST, **{"row-fed-inputs": True})
        plain = built(graph, Optimize.RAM_LEAST, **{"row-fed-inputs": False})
        less += workspace(fed) < workspace(plain) + size
    assert less >= 4


@pytest.mark.parametrize("option", ["row-fed-inputs", "row-drained-outputs"])
@pytest.mark.parametrize(
    ("changes", "against"),
    [
        ({"pass_config": {"memory.use_workspace_io": True}}, "memory.use_workspace_io"),
        ({"runtime": Runtime("crt", {"system-lib": True})}, "system-lib"),
        ({"compatibility": "microtvm"}, "compatibility"),
    ],
)
def test_contradictions_are_refused(option: str, changes: dict[str, Any], against: str) -> None:
    """A tensor that is never there as a whole cannot be passed packed, or be placed."""
    with pytest.raises(ConfigError, match=f"'{option}' is True, which excludes .*{against}"):
        CompilationConfig(targets="c", executor=Executor("aot", {option: True}), **changes)


def test_a_missing_function_is_a_status() -> None:
    """`move` left out is what a NULL pointer is."""
    artifact = built(quantised_graph(), Optimize.RAM_LEAST)
    library = host.load(artifact, opt_level=0)._backend
    ffi: cffi.FFI = library._ffi  # type: ignore[attr-defined]
    structs = [ffi.new(f"struct default_{kind}s *") for kind in ("input", "output")]
    memory = np.zeros(workspace(artifact) + 64, np.uint8)
    run = library._library.default_run  # type: ignore[attr-defined]
    address = -(-memory.ctypes.data // 64) * 64
    assert run(*structs, ffi.cast("void *", address)) == -1


def test_the_header_says_what_a_row_is() -> None:
    """Rows and their size are macros, and the struct holds the function."""
    text = built(quantised_graph(), Optimize.RAM_LEAST).source("default.h")
    words = {tuple(line.split()[1:3]) for line in text.splitlines() if "ROW" in line}
    assert {("DEFAULT_IMAGE_ROWS", "3"), ("DEFAULT_IMAGE_ROW_SIZE", "4")} <= words
    assert "struct default_rows image; /* int8[1][3][4][1] */" in text
    plain = built(quantised_graph(), Optimize.RAM_LEAST, **{"row-fed-inputs": False})
    assert "rows" not in plain.source("default.h").split("#include", 1)[1]


def test_some_by_rows_and_some_not() -> None:
    """Inputs and outputs are chosen apart."""
    graph = quantised_graph()
    inputs = sample_inputs(graph)
    expected = reference_outputs(graph, inputs)["scores"]
    for fed, drained in itertools.product([False, True], repeat=2):
        options = {"row-fed-inputs": fed, "row-drained-outputs": drained}
        model = host.load(built(graph, Optimize.SPEED, **options), opt_level=0)
        np.testing.assert_array_equal(model.run(inputs)["scores"], expected)


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What docs/rows.md shows is what happens."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", python_path(ROOT / "generator"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert shown("rows.md")[0] in follow("rows.md", tmp_path)
