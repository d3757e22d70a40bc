"""Names of a model stand in comments, strings and files of data, whatever characters they have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Executor, host
from microtir.config import Runtime
from microtir.graph.ir import Graph, Tensor
from tests.support.c_compilers import strict_problems
from tests.support.small_models import module_of, tiny_graph

HOSTILE = '*/ int evil; /* "); #error\n\r\t\\ ??/ ??= \0 \a\x7f1 \u00e4\u6f22 %s $(x) `x` //\\'
CASES: dict[str, dict[str, Any]] = {
    "c": {"executor": Executor("aot")},
    "packed": {"executor": Executor("aot", {"interface-api": "packed"}),
               "runtime": Runtime("crt", {"system-lib": True})},
    "graph": {"executor": Executor("graph")},
    "debug": {"executor": Executor("debug")},
    "file": {"executor": Executor("graph", {"link-params": False})},
    "microtvm": {"executor": Executor("aot"), "compatibility": "microtvm"},
    "microtvm graph": {"executor": Executor("graph"), "compatibility": "microtvm"},
}  # fmt: skip


def _hostile(known: Graph) -> Graph:
    """Return the graph with a hostile part in each name of it, and in that of its file."""
    made: dict[Tensor, Tensor] = {}

    def renamed(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        for tensor in tensors:
            made.setdefault(tensor, replace(tensor, name=tensor.name + HOSTILE))
        return tuple(made[tensor] for tensor in tensors)

    nodes = tuple(
        replace(
            node,
            inputs=renamed(node.inputs),
            outputs=renamed(node.outputs),
            name=node.name + HOSTILE,
            source=replace(node.source, file=f"{HOSTILE}.tflite", operator=f"OP{HOSTILE}"),
        )
        for node in known.nodes
    )
    return replace(known, nodes=nodes, inputs=renamed(known.inputs), outputs=renamed(known.outputs))


@pytest.mark.parametrize("case", CASES)
def test_no_name_leaves_its_place(tmp_path: Path, case: str) -> None:
    """Control characters in a C string were JSON's escapes, and a wide string broke in two."""
    config = CompilationConfig(targets="c", module_name="named", **CASES[case])
    artifact = microtir.build(module_of(_hostile(tiny_graph())), config)
    folder = artifact.export(tmp_path / "out")
    assert strict_problems(folder, "gcc", "c99") == ""
    text = "".join(file.text for file in artifact.sources if file.path.endswith((".c", ".h")))
    assert "\nint evil" not in text
    assert text.isascii()


def test_names_of_nodes_are_those_of_the_model() -> None:
    """A program that looks a node up by its name finds the whole of it, beyond ASCII, too."""
    name = "\u00e4\u6f22? ??/ \a"
    known = tiny_graph()
    graph = replace(
        known, nodes=tuple(replace(n, name=f"{name}{i}") for i, n in enumerate(known.nodes))
    )
    config = CompilationConfig(targets="c", executor=Executor("debug"))
    model = host.load(microtir.build(module_of(graph), config))
    [port] = model.artifact.metadata.ports[:1]
    _, nodes = model.run_nodes({port.name: np.zeros(port.shape, port.dtype)})
    assert [node.name for node in nodes] == [f"{name}0", f"{name}1"]
