"""Inputs and outputs are called as a file's signature calls them, where it has one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from microtir.frontend import check, from_tflite
from microtir.graph.ir import Graph
from microtir.operators.arithmetic.tflite import AddOptions
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.writers.tflite import TfliteBuilder

X, SUM, TWICE = range(3)
TENSORS = ("serving_default_x:0", "StatefulPartitionedCall:0", "StatefulPartitionedCall:1")


def file(
    inputs: Mapping[str, int],
    outputs: Mapping[str, int],
    names: tuple[str, str, str] = TENSORS,
    results: tuple[int, ...] = (SUM, TWICE),
) -> bytes:
    """Return x + x and its double, with a signature of these names by tensor, and another one."""
    builder = TfliteBuilder()
    x, y, z = (builder.tensor(name, (1, 4), np.float32) for name in names)
    builder.operator(BuiltinOperator.ADD, [x, x], [y], AddOptions())
    builder.operator(BuiltinOperator.ADD, [y, y], [z], AddOptions())
    builder.signature("serving", inputs, outputs)
    builder.signature("second", {"other": X}, {})
    return builder.build([x], list(results))


def read(data: bytes, signature: str | None = None) -> Graph:
    """Return the graph of a file that has no problem."""
    assert not check(data, signature=signature)
    graph = from_tflite(data, signature=signature).graph
    assert graph is not None
    return graph


def ports(graph: Graph) -> list[str]:
    """Return the names of the inputs and outputs."""
    return [tensor.name for tensor in (*graph.arguments, *graph.results)]


def test_ports_have_the_names_of_the_signature() -> None:
    """Those of the first one, or of that which is asked for; nodes keep their names."""
    data = file({"image": X}, {"total": SUM, "twice": TWICE})
    graph = read(data)
    assert ports(graph) == ports(read(data, "serving")) == ["image", "total", "twice"]
    assert [node.name for node in graph.nodes] == list(TENSORS[1:])
    assert ports(read(data, "second")) == ["other", *TENSORS[1:]]


def test_names_of_tensors_become_aliases() -> None:
    """A port is known by either name, and an unknown name stays as it is."""
    graph = read(file({"image": X}, {"total": SUM, "twice": TWICE}))
    assert [graph.port_name(name) for name in (*TENSORS, "image", "else")] == [
        "image", "total", "twice", "image", "else",
    ]  # fmt: skip
    assert [graph.aliases_of(t) for t in (*graph.arguments, *graph.results)] == [
        (name,) for name in TENSORS
    ]


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ({"x": X}, {"x": SUM}),
        ({TENSORS[1]: X}, {}),
        ({}, {TENSORS[2]: SUM, TENSORS[1]: TWICE}),
        ({"": X}, {}),
        ({"x": 7}, {}),
        ({"x": 2**31}, {}),
    ],
    ids=["one for two", "another tensor's", "crossed", "none", "no such tensor", "far beyond"],
)
def test_names_that_are_ambiguous_are_left_out(
    inputs: Mapping[str, int], outputs: Mapping[str, int]
) -> None:
    """The tensors keep their names, and the file is read."""
    graph = read(file(inputs, outputs))
    assert ports(graph) == list(TENSORS)
    assert not graph.aliases


def test_an_output_that_is_listed_twice_has_both_names() -> None:
    """Each place in the list takes a name of its tensor; a third one keeps that of the tensor."""
    graph = read(file({}, {"a": SUM, "b": SUM}, results=(SUM, SUM, SUM)))
    assert ports(graph) == [TENSORS[0], "a", "b", f"{TENSORS[1]}_3"]


def test_a_tensor_inside_gives_way() -> None:
    """A port has its name although another tensor was called so."""
    graph = read(file({"in": X}, {"out": TWICE}, ("in:0", "out", "z:0"), (TWICE,)))
    assert ports(graph) == ["in", "out"]
    assert [t.name for t in graph.tensors()] == ["in", "out_2", "out"]
