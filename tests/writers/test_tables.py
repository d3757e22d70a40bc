"""Functions that tflite-micro has no integers of are looked up in a table of the written file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

import microtir
from microtir import host
from microtir.config import Numerics
from microtir.errors import UnsupportedModelError
from microtir.frontend import from_onnx
from microtir.graph.ir import Graph
from microtir.module.ir_module import IRModule
from microtir.operators.conversion.definition import Tabulated
from microtir.quantise import QuantiseOptions, Width
from microtir.rewrite.optimise import Tabulate
from microtir.rewrite.reference import execute
from tests.support.onnx_models import model_of, typed
from tests.support.written_files import WrittenFile

_PLAIN = QuantiseOptions(rounding_work=0.0)
_WITH_ERF = [  # GELU as PyTorch's exporter writes it
    helper.make_node("Div", ["r", "root"], ["d"]),
    helper.make_node("Erf", ["d"], ["e"]),
    helper.make_node("Add", ["e", "one"], ["a"]),
    helper.make_node("Mul", ["r", "a"], ["p"]),
    helper.make_node("Mul", ["p", "half"], ["f"]),
]
FUNCTIONS = ("erf", "Atan", "Exp", "Gelu", "Mish", "Round", "Sign", "Sin", "Sinh", "Sqrt", "Tan")


def _network(function: str) -> Graph:
    """Return a function between two dense layers, of positive values where it asks for them."""
    rng = np.random.default_rng(3)
    steps = _WITH_ERF if function == "erf" else [helper.make_node(function, ["r"], ["f"])]
    bound = "Sigmoid" if function == "Sqrt" else "Tanh"
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node(bound, ["m"], ["r"]),
        *steps,
        helper.make_node("MatMul", ["f", "w"], ["y"]),
    ]
    constants = {"w": rng.normal(0, 0.3, (24, 24)), "root": 2**0.5, "one": 1.0, "half": 0.5}
    floats = {name: np.asarray(value, np.float32) for name, value in constants.items()}
    data = model_of(nodes, [typed("x", (3, 24))], [typed("y", (3, 24))], floats, opset=20)
    graph = from_onnx(data, name="net").graph
    assert graph is not None
    return graph


def _written(function: str) -> WrittenFile:
    return WrittenFile.of(_network(function), _PLAIN)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_references_look_up_what_our_c_does(function: str) -> None:
    """The function and its neighbours are three operators, of the same bits in three places."""
    file = _written(function)
    names = [node.op.name for node in file.again.nodes]
    assert names == ["fully_connected", "cast", "add", "gather", "fully_connected"]
    for numerics in (Numerics.TFLM, Numerics.TFLITE_REF):
        assert file.differences(numerics) == 0
    for step in file.steps:
        (before, after) = (execute(g, step)["y"] for g in (file.quantised.graph, file.again))
        np.testing.assert_array_equal(before, after)


def test_a_file_that_is_read_again_has_one_table() -> None:
    """The three operators are one in C, and the C of both graphs gives the same bits."""
    file = _written("erf")
    assert [type(node.op) for node in Tabulate()(file.again).nodes].count(Tabulated) == 1
    assert len(Tabulate()(file.again).nodes) == 3
    programs = [
        host.load(microtir.build(IRModule(graph=graph)), opt_level=0)
        for graph in (file.quantised.graph, file.again)
    ]
    for step in file.steps:
        first, second = (program.run(step)["y"] for program in programs)
        np.testing.assert_array_equal(first, second)


def test_layers_in_floats_say_that_they_are_looked_up() -> None:
    """A table stands for the real numbers, with int8 on both sides alone."""
    graph = _network("Sin")
    whys = {
        width: [layer.why for layer in WrittenFile.of(graph, _width(width)).quantised.floats]
        for width in (Width.INT8, Width.INT16)
    }
    reason = "it has no integer version"
    table = f"{reason}; C and .tflite files look it up in a table"
    assert whys == {Width.INT8: [table], Width.INT16: [reason]}


def test_sixteen_bits_have_no_table() -> None:
    """A table would have 65,536 entries: what the format lacks is refused, with advice."""
    with pytest.raises(UnsupportedModelError, match="TFLite has no operator for erf") as error:
        WrittenFile.of(_network("erf"), _width(Width.INT16))
    assert "use int8 before and after it, so that it is a table" in str(error.value)


def _width(width: Width) -> QuantiseOptions:
    return QuantiseOptions(width=width, rounding_work=0.0)


EXPORTS = ("torch_mlp", "torch_mlp_dynamo", "torch_encoder")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.model(f"exported/{name}")) for name in EXPORTS]
)
def test_exports_of_pytorch(models_dir: Path, name: str) -> None:
    """Both exporters write GELU with an erf; tflite-micro has no CAST of an encoder's int64."""
    graph = from_onnx(models_dir / "exported" / f"{name}.onnx").graph
    assert graph is not None
    file = WrittenFile.of(graph, _PLAIN)
    assert file.differences(Numerics.TFLITE_REF) == 0
    if name != "torch_encoder":
        assert file.differences(Numerics.TFLM) == 0
