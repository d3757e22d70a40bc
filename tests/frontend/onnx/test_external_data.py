"""Values of a model that lie in another file, wherever in the model their tensors stand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, external_data_helper, helper, numpy_helper

from microtir.errors import ModelFileError
from microtir.frontend import check, from_onnx
from microtir.host.oracle import Oracle, expected_outputs
from microtir.host.samples import SampleBatch
from microtir.rewrite.reference import execute
from tests.support.onnx_models import IR_VERSION, OPSET, Array, typed

pytestmark = pytest.mark.tools

WEIGHTS = np.array([[1, 2, 3, 4]], np.float32)
X = np.full((1, 4), 10, np.float32)
ADD = helper.make_node("Add", ["x", "w"], ["y"])
ANY = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)


def elsewhere(location: str = "w.bin", **entries: str) -> TensorProto:
    """The weights, said to lie in a file."""
    tensor = numpy_helper.from_array(WEIGHTS, "w")
    external_data_helper.set_external_data(tensor, location)
    tensor.ClearField("raw_data")
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def graph_of(nodes: list[onnx.NodeProto], *held: TensorProto) -> onnx.GraphProto:
    """A graph of the input x and the output y."""
    return helper.make_graph(nodes, "g", [typed("x", (1, 4))], [ANY], list(held))


def model_of(graph: onnx.GraphProto, *functions: onnx.FunctionProto) -> onnx.ModelProto:
    """A model with functions of the domain own."""
    sets = [helper.make_opsetid("", OPSET), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, functions=functions, opset_imports=sets, ir_version=IR_VERSION)


def constant() -> onnx.NodeProto:
    """The weights as a node."""
    return helper.make_node("Constant", [], ["w"], value=elsewhere())


def in_initialiser() -> onnx.ModelProto:
    """In an initialiser of the graph."""
    return model_of(graph_of([ADD], elsewhere()))


def in_attribute() -> onnx.ModelProto:
    """In an attribute of a node."""
    return model_of(graph_of([constant(), ADD]))


def in_sparse_initialiser() -> onnx.ModelProto:
    """In the values of a sparse initialiser."""
    places = helper.make_tensor("i", TensorProto.INT64, [4], [0, 1, 2, 3])
    values = elsewhere()
    values.dims[:] = [4]
    graph = graph_of([ADD])
    graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [1, 4]))
    return model_of(graph)


def in_branch() -> onnx.ModelProto:
    """In a constant, and in an initialiser, of a graph inside of a node."""
    yes = helper.make_graph([constant(), ADD], "yes", [], [ANY])
    no = helper.make_graph([ADD], "no", [], [ANY], [elsewhere()])
    condition = helper.make_tensor("c", TensorProto.BOOL, [], [True])
    choice = helper.make_node("If", ["c"], ["y"], then_branch=yes, else_branch=no)
    return model_of(graph_of([choice], condition))


def in_loop() -> onnx.ModelProto:
    """In an initialiser of a body."""
    nodes = [
        helper.make_node("Add", ["v", "w"], ["sum"]),
        helper.make_node("Identity", ["go"], ["on"]),
    ]
    body = helper.make_graph(
        nodes,
        "body",
        [typed("i", (), np.int64), typed("go", (), np.bool_), typed("v", (1, 4))],
        [typed("on", (), np.bool_), typed("sum", (1, 4))],
        [elsewhere()],
    )
    turns = helper.make_tensor("turns", TensorProto.INT64, [], [1])
    return model_of(
        graph_of([helper.make_node("Loop", ["turns", "", "x"], ["y"], body=body)], turns)
    )


def in_function() -> onnx.ModelProto:
    """In an attribute of a node of a function."""
    opset = [helper.make_opsetid("", OPSET)]
    function = helper.make_function("own", "plus", ["x"], ["y"], [constant(), ADD], opset)
    return model_of(graph_of([helper.make_node("plus", ["x"], ["y"], domain="own")]), function)


PLACES = [
    in_initialiser, in_attribute, in_sparse_initialiser, in_branch, in_loop, in_function,
]  # fmt: skip


def saved(model: onnx.ModelProto, folder: Path) -> Path:
    """Return the path of a model, with the file of its weights beside it."""
    folder.mkdir(exist_ok=True)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    (folder / "w.bin").write_bytes(WEIGHTS.tobytes())
    return path


def result(path: Path) -> Array:
    """Return what a model computes."""
    graph = from_onnx(path).graph
    assert graph is not None
    (y,) = execute(graph, {"x": X}).values()
    return y


@pytest.mark.parametrize("make", PLACES)
def test_it_lies_beside_the_model(
    make: Callable[[], onnx.ModelProto], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the tensor stands its file is that of the model's folder, not of the current one."""
    here = tmp_path / "here"
    here.mkdir()
    (here / "w.bin").write_bytes((-WEIGHTS).tobytes())
    monkeypatch.chdir(here)
    path = saved(make(), tmp_path / "there")
    np.testing.assert_array_equal(result(path), X + WEIGHTS)
    (path.parent / "w.bin").unlink()
    (problem,) = check(path)
    assert isinstance(problem, ModelFileError)
    assert "its values lie in 'w.bin'" in problem.what
    (from_bytes,) = check(path.read_bytes())
    assert "its values lie in 'w.bin'" in from_bytes.what


@pytest.mark.parametrize("make", [place for place in PLACES if place is not in_sparse_initialiser])
def test_onnxruntime_is_given_it(make: Callable[[], onnx.ModelProto], tmp_path: Path) -> None:
    """The oracle gets a model as bytes, for which onnxruntime would look in the current folder."""
    path = saved(make(), tmp_path / "there")
    graph = from_onnx(path).graph
    assert graph is not None
    runs = SampleBatch(({"x": X},))
    made = expected_outputs(Oracle.ONNXRUNTIME, graph, path.read_bytes(), runs, folder=path.parent)
    np.testing.assert_array_equal(made.values[0]["y"], X + WEIGHTS)


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({"length": "17"}, "expected: 16 bytes"),
        ({"length": "1" + "0" * 30}, "expected: 16 bytes"),
        ({"length": "-1"}, "expected: 16 bytes"),
        ({"length": "four"}, "its values lie in 'w.bin'"),
        ({"offset": "1"}, "where only 15 bytes are left"),
        ({"offset": "1" + "0" * 30}, "its values lie in 'w.bin'"),
        ({"offset": "-4"}, "its values lie in 'w.bin'"),
    ],
)
def test_lengths_that_contradict_the_shape(
    entries: dict[str, str], said: str, tmp_path: Path
) -> None:
    """The shape says how many bytes are read; another length is refused before anything is."""
    (problem,) = check(saved(model_of(graph_of([ADD], elsewhere(**entries))), tmp_path))
    assert isinstance(problem, ModelFileError)
    assert said in str(problem)


@pytest.mark.parametrize("dims", [(1 << 40,), (1 << 40, 1 << 40), (-1, 4), (1 << 28,)])
def test_files_with_holes(dims: tuple[int, ...], tmp_path: Path) -> None:
    """A shape that asks for all of a huge file of zeros is refused, and nothing is read."""
    tensor = elsewhere()
    tensor.dims[:] = dims
    path = saved(model_of(graph_of([ADD], tensor, tensor)), tmp_path)
    with (tmp_path / "w.bin").open("wb") as stream:
        stream.truncate(1 << 31)
    (problem,) = check(path)
    assert isinstance(problem, ModelFileError)


@pytest.mark.parametrize(
    "location", ["a/" * 2500, "a" * 5000, "\0", "", ".", "../w.bin", "/etc/passwd", "w.bin/x"]
)
def test_locations_that_are_none(location: str, tmp_path: Path) -> None:
    """A name that is no file of the folder is refused, and a long one is cut in the message."""
    path = saved(model_of(graph_of([ADD], elsewhere(location))), tmp_path / "inner")
    (tmp_path / "w.bin").write_bytes(WEIGHTS.tobytes())
    (problem,) = check(path)
    assert "its values lie in" in problem.what
    assert len(str(problem)) < 800


def test_a_length_of_zero_says_nothing(tmp_path: Path) -> None:
    """Some exporters write 0 where the length is that of the shape."""
    path = saved(model_of(graph_of([ADD], elsewhere(length="0"))), tmp_path)
    np.testing.assert_array_equal(result(path), X + WEIGHTS)
