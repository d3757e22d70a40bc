"""Outputs are named by keys of dictionaries, fields of named tuples, and places."""

from __future__ import annotations

import json
from typing import Any

import pytest

from microtir.errors import ModelFileError
from microtir.frontend import check, from_torch
from tests.support.torch_programs import TorchProgram, zipped

LEAF: dict[str, Any] = {"type": None, "context": None, "children_spec": []}


def tree(kind: str, context: object, *children: dict[str, Any]) -> dict[str, Any]:
    """Return what an archive says of a nest."""
    return {"type": kind, "context": json.dumps(context), "children_spec": list(children)}


def names(spec: dict[str, Any] | None, count: int, fields: dict[str, list[str]]) -> list[str]:
    """Return the names of outputs that are nested in a way."""
    program = TorchProgram({"x": ((2,), "float32")})
    program.out_spec = "" if spec is None else json.dumps([1, spec])
    program.outputs = [
        program.add("aten.relu.default", f"y{place}", (2,), self="x") for place in range(count)
    ]
    members = program.members()
    document = json.loads(members["models/model.json"])
    document["graph_module"]["treespec_namedtuple_fields"] = fields
    members["models/model.json"] = json.dumps(document).encode()
    graph = from_torch(zipped(members)).graph
    assert graph is not None
    return [tensor.name for tensor in graph.outputs]


PAIR = tree("builtins.tuple", None, LEAF, LEAF)


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        (None, ["output_0"]),
        (LEAF, ["output_0"]),
        (PAIR, ["output_0", "output_1"]),
        (tree("builtins.tuple", None, LEAF, PAIR), ["output_0", "output_1", "output_2"]),
        (tree("builtins.dict", ["y", "h"], LEAF, LEAF), ["y", "h"]),
        (tree("builtins.dict", ["a", "b"], PAIR, LEAF), ["a_0", "a_1", "b"]),
        (tree("builtins.list", None, LEAF, tree("builtins.dict", ["k"], LEAF)),
         ["output_0", "output_1_k"]),
        (tree("collections.namedtuple", "my.Pair", LEAF, LEAF), ["left", "right"]),
        (tree("builtins.dict", ["x", "x_2"], LEAF, LEAF), ["x_3", "x_2"]),
    ],
)  # fmt: skip
def test_names(spec: dict[str, Any] | None, wanted: list[str]) -> None:
    """By the form of what `forward` returns; one that an input has gets a number."""
    assert names(spec, len(wanted), {"my.Pair": ["left", "right"]}) == wanted


def test_another_number_of_outputs_is_refused() -> None:
    """The file contradicts itself."""
    with pytest.raises(ModelFileError, match="it has 3 outputs, but describes 2 results"):
        names(PAIR, 3, {})


def test_a_nest_without_end_is_refused() -> None:
    """Nobody returns that."""
    spec = LEAF
    for _ in range(40):
        spec = tree("builtins.tuple", None, spec)
    with pytest.raises(ModelFileError, match="16 deep"):
        names(spec, 1, {})


def test_outputs_without_elements_are_refused() -> None:
    """Each of them by its name, beside others, too: outputs that are left out would move these."""
    program = TorchProgram({"x": ((2, 3), "float32")})
    program.out_spec = json.dumps([1, PAIR])
    none = program.add("aten.slice.Tensor", "none", (0, 3), self="x", dim=0, start=2, end=2)
    program.outputs = [none, program.add("aten.relu.default", "y", (2, 3), self="x")]
    (problem,) = check(program.archive())
    assert problem.what == "the output 'output_0' has the shape (0, 3), which has no elements"
