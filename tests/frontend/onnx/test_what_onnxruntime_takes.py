"""Files that break a rule of ONNX and run in onnxruntime all the same: they are read, too."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from microtir.frontend import check, from_onnx
from microtir.host.oracle import Oracle, expected_outputs
from microtir.host.samples import SampleBatch
from microtir.rewrite.reference import execute
from tests.support.onnx_models import run_onnxruntime, typed

pytestmark = pytest.mark.tools

X = np.array([[-1.5, 0.25, 2.0, -0.5]], np.float32)
W = np.array([1, 2, 3, 4], np.float32)
RELU, ADD = helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Add", ["x", "w"], ["y"])


def plain(
    *nodes: onnx.NodeProto, held: dict[str, Any] | None = None, opset: int = 17, shape: Any = (1, 4)
) -> onnx.ModelProto:
    """A model of the input x and the output y that keeps all rules."""
    tensors = [numpy_helper.from_array(array, name) for name, array in (held or {}).items()]
    graph = helper.make_graph(list(nodes), "g", [typed("x", shape)], [typed("y", shape)], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def unsorted() -> onnx.ModelProto:
    """Nodes in the wrong order."""
    nodes = [helper.make_node("Sigmoid", ["a"], ["y"]), helper.make_node("Relu", ["x"], ["a"])]
    return plain(*nodes)


def unsorted_long() -> onnx.ModelProto:
    """Many of them, backwards, one of which takes what stands behind it inside of a branch."""
    names = ["x", *(f"a{n}" for n in range(30)), "b"]
    pairs = list(pairwise(names))
    nodes = [helper.make_node("Softplus", [a], [b]) for a, b in reversed(pairs)]
    branches = {
        f"{word}_branch": helper.make_graph(
            [helper.make_node(operator, ["b"], [word])], word, [], [typed(word, (1, 4))]
        )
        for word, operator in (("then", "Neg"), ("else", "Abs"))
    }
    condition = helper.make_node("Greater", ["sum", "zero"], ["c"])
    total = helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0)
    choice = helper.make_node("If", ["c"], ["y"], **branches)
    return plain(*nodes, choice, condition, total, held={"zero": np.array(0, np.float32)})


def without_import() -> onnx.ModelProto:
    """An operator of a domain whose version the file does not say."""
    return plain(helper.make_node("Gelu", ["x"], ["y"], domain="com.microsoft"))


def without_ml_import() -> onnx.ModelProto:
    """The same of ai.onnx.ml."""
    numbers: dict[str, Any] = {"offset": [1.0], "scale": [2.0]}
    return plain(helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", **numbers))


def by_its_long_name() -> onnx.ModelProto:
    """ONNX's own domain, called ai.onnx at a node."""
    return plain(helper.make_node("Relu", ["x"], ["y"], domain="ai.onnx"))


def initialiser_by_itself() -> onnx.ModelProto:
    """An initialiser that is no input, in the third version of the format."""
    model = plain(ADD, held={"w": W}, opset=8)
    model.ir_version = 3
    return model


def initialiser_as_input() -> onnx.ModelProto:
    """An initialiser that is an input without a shape."""
    model = plain(ADD, held={"w": W})
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, None))
    return model


def initialiser_twice() -> onnx.ModelProto:
    """Two initialisers of one name."""
    model = plain(ADD, held={"w": W})
    model.graph.initializer.append(numpy_helper.from_array(-W, "w"))
    return model


def nameless() -> onnx.ModelProto:
    """A graph without a name."""
    model = plain(RELU)
    model.graph.name = ""
    return model


def output_without_type() -> onnx.ModelProto:
    """An output of which nothing but the name is said."""
    model = plain(RELU)
    model.graph.output[0].ClearField("type")
    return model


def wrong_hints() -> onnx.ModelProto:
    """A value between nodes with a wrong shape."""
    model = plain(helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Abs", ["a"], ["y"]))
    model.graph.value_info.append(typed("a", (1, 5)))
    return model


def minus_one() -> onnx.ModelProto:
    """A batch that is stored as -1."""
    return plain(RELU, shape=(-1, 4))


def unused_text() -> onnx.ModelProto:
    """Strings and complex numbers that nothing uses."""
    return plain(RELU, held={"s": np.array(["a", "b"], object), "c": np.ones(2, np.complex64)})


def unused_random() -> onnx.ModelProto:
    """An operator that is not supported, on which nothing depends."""
    return plain(RELU, helper.make_node("RandomNormal", [], ["noise"], shape=[2]))


def sparse() -> onnx.SparseTensorProto:
    """The values 1 and 4 of four."""
    values = helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 4.0])
    return helper.make_sparse_tensor(
        values, helper.make_tensor("i", TensorProto.INT64, [2], [0, 3]), [4]
    )


def sparse_constant() -> onnx.ModelProto:
    """A constant of which the file stores what is not zero."""
    return plain(helper.make_node("Constant", [], ["w"], sparse_value=sparse()), ADD)


def sparse_initialiser() -> onnx.ModelProto:
    """The same as an initialiser."""
    model = plain(ADD)
    model.graph.sparse_initializer.append(sparse())
    return model


def part() -> onnx.ModelProto:
    """The first slice whose starts and ends are inputs."""
    held = {name: np.array([value], np.int64) for name, value in (("s", 1), ("e", 99), ("a", -1))}
    node = helper.make_node("DynamicSlice", ["x", "s", "e", "a"], ["z"])
    total = helper.make_node("ReduceSum", ["z"], ["sum"], keepdims=1, axes=[1])
    return plain(node, total, helper.make_node("Add", ["x", "sum"], ["y"]), held=held, opset=9)


def of_microsoft() -> onnx.ModelProto:
    """Operators of onnxruntime's own domain that ONNX has, too."""
    held: dict[str, Any] = {
        "axis": np.array(-1, np.int32), "pads": np.array([1, 0, 2, 0, 1, 0], np.int64),
        "at": np.array([[1, 0], [1, 2]], np.int64), "value": np.array([0.5], np.float32),
        "from": np.array(0, np.float32), "to": np.array(4, np.float32),
    }  # fmt: skip
    own: dict[str, Any] = {"domain": "com.microsoft"}
    nodes = [
        helper.make_node("Trilu", ["x"], ["t"], upper=1, **own),
        helper.make_node("ExpandDims", ["t", "axis"], ["d"], **own),
        helper.make_node("Pad", ["d", "pads", "value"], ["p"], mode="constant", **own),
        helper.make_node("GatherND", ["p", "at"], ["g"], **own),
        helper.make_node("ReduceSum", ["g"], ["sum"], keepdims=0),
        helper.make_node("Range", ["from", "to"], ["r"], **own),
        helper.make_node("Mul", ["sum", "r"], ["m"]),
        helper.make_node("Add", ["x", "m"], ["y"]),
    ]
    return plain(*nodes, held=held)


FILES = [
    unsorted, unsorted_long, without_import, without_ml_import, by_its_long_name,
    initialiser_by_itself, initialiser_as_input, initialiser_twice, nameless, output_without_type,
    wrong_hints, minus_one, unused_text, unused_random, sparse_constant, sparse_initialiser,
    part, of_microsoft,
]  # fmt: skip


@pytest.mark.parametrize("make", FILES)
def test_it_is_read(make: Callable[[], onnx.ModelProto]) -> None:
    """The graph computes what onnxruntime does."""
    data = make().SerializeToString()
    (want,) = run_onnxruntime(data, {"x": X})
    graph = from_onnx(data).graph
    assert graph is not None
    (got,) = execute(graph, {"x": X}).values()
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def test_an_input_without_a_shape() -> None:
    """Its shape, not even its rank, is not taken for that of a scalar."""
    model = plain(RELU)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    data = model.SerializeToString()
    (problem,) = check(data)
    assert "its shape is not known" in problem.what
    graph = from_onnx(data, input_shapes={"x": (1, 4)}).graph
    assert graph is not None
    (got,) = execute(graph, {"x": X}).values()
    np.testing.assert_array_equal(got, np.maximum(X, 0))


def test_a_batch_of_one_dimension() -> None:
    """A vector whose only extent is a batch has one element."""
    inputs = [typed("x", ("batch_size", 4)), typed("l", ("batch_size",))]
    nodes = [helper.make_node("Add", ["x", "l"], ["y"])]
    graph = helper.make_graph(nodes, "g", inputs, [typed("y", ("batch_size", 4))])
    sets = [helper.make_opsetid("", 17)]
    data = helper.make_model(graph, opset_imports=sets, ir_version=8).SerializeToString()
    given = {"x": X, "l": np.array([3], np.float32)}
    read = from_onnx(data).graph
    assert read is not None
    (got,) = execute(read, given).values()
    np.testing.assert_array_equal(got, run_onnxruntime(data, given)[0])


def test_an_input_of_strings_that_nothing_takes() -> None:
    """It is no argument in C, and the oracle is given anything."""
    model = plain(RELU)
    text = helper.make_tensor_value_info("t", TensorProto.STRING, (1, 2))
    model.graph.input.append(text)
    data = model.SerializeToString()
    graph = from_onnx(data).graph
    assert graph is not None
    assert [tensor.name for tensor in graph.arguments] == ["x"]
    found = expected_outputs(Oracle.ONNXRUNTIME, graph, data, SampleBatch(({"x": X},)))
    np.testing.assert_array_equal(found.values[0]["y"], np.maximum(X, 0))


def test_what_training_finds_is_refused() -> None:
    """Onnxruntime normalises by the batch where BatchNormalization has outputs for training."""
    held = {name: np.array([n + 0.5] * 4, np.float32) for n, name in enumerate("sbmv")}
    for outputs in (["y", "nm", "nv", "sm", "sv"], ["y", "", "", "", ""]):
        node = helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], outputs)
        (problem,) = check(plain(node, held=held, opset=9).SerializeToString())
        assert problem.what == "it is in training mode"
