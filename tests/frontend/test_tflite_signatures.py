"""Inputs and outputs are called as a file's signature calls them, where it has one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from microtir.frontend import check, from_tflite
from microtir.operators.arithmetic.tflite import AddOptions
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.writers.tflite import TfliteBuilder

X, SUM, TWICE = range(3)


def file(inputs: Mapping[str, int], outputs: Mapping[str, int], key: str = "serving") -> bytes:
    """Return x + x and its double; a signature names the tensors that are given."""
    builder = TfliteBuilder()
    names = ("serving_default_x:0", "StatefulPartitionedCall:0", "StatefulPartitionedCall:1")
    x, y, z = (builder.tensor(name, (1, 4), np.float32) for name in names)
    builder.operator(BuiltinOperator.ADD, [x, x], [y], AddOptions())
    builder.operator(BuiltinOperator.ADD, [y, y], [z], AddOptions())
    builder.signature(key, inputs, outputs)
    builder.signature("second", {"other": X}, {})
    return builder.build([x], [y, z])


def ports(data: bytes, signature: str | None = None) -> list[str]:
    """Return the names of the inputs and outputs."""
    assert not check(data, signature=signature)
    graph = from_tflite(data, signature=signature).graph
    assert graph is not None
    return [tensor.name for tensor in (*graph.arguments, *graph.results)]


def test_ports_have_the_names_of_the_signature() -> None:
    """Those of the first one, or of that which is asked for."""
    data = file({"image": X}, {"total": SUM, "twice": TWICE})
    assert ports(data) == ["image", "total", "twice"]
    assert ports(data, "serving") == ["image", "total", "twice"]
    assert ports(data, "second") == [
        "other", "StatefulPartitionedCall:0", "StatefulPartitionedCall:1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ({"x": X}, {"x": SUM}),
        ({"": X}, {}),
        ({"x": 7}, {}),
        ({"x": 2**31}, {}),
    ],
    ids=["one name for two", "no name", "no such tensor", "far beyond"],
)
def test_names_that_name_nothing_are_left_out(
    inputs: Mapping[str, int], outputs: Mapping[str, int]
) -> None:
    """The tensors keep their names, and the file is read."""
    assert ports(file(inputs, outputs)) == [
        "serving_default_x:0", "StatefulPartitionedCall:0", "StatefulPartitionedCall:1",
    ]  # fmt: skip


def test_a_tensor_inside_gives_way() -> None:
    """A port has its name although another tensor was called so."""
    builder = TfliteBuilder()
    x, y, z = (builder.tensor(name, (1, 4), np.float32) for name in ("in:0", "out", "z:0"))
    builder.operator(BuiltinOperator.ADD, [x, x], [y], AddOptions())
    builder.operator(BuiltinOperator.ADD, [y, y], [z], AddOptions())
    builder.signature("serving", {"in": x}, {"out": z})
    assert ports(builder.build([x], [z])) == ["in", "out"]
