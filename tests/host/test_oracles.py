"""Other runtimes as oracles: each in a process of its own, on files that it reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from microtir.config.states import states
from microtir.errors import ToolError, UsageError
from microtir.frontend import from_onnx, from_tflite
from microtir.graph.ir import Graph
from microtir.host.oracle import Oracle, check_format, expected_outputs
from microtir.host.runtimes import OnnxRuntimeSession, Ports
from microtir.host.samples import SampleBatch
from microtir.rewrite.reference import execute, execute_steps
from microtir.rewrite.requests.bound_states import BindStates
from tests.support.command import FLOAT, INT8
from tests.support.onnx_models import Array, ml_model_of, ml_node, model_of, typed
from tests.support.stateful import running_sum


def graph_of(model: bytes, **said: Any) -> Graph:
    """The graph of an ONNX model."""
    graph = from_onnx(model, **said).graph
    assert graph is not None
    return graph


def agreed(graph: Graph, model: bytes, folder: Path | None = None) -> dict[str, Array]:
    """Assert that onnxruntime gives what the graph means, under its names; return it."""
    generator = np.random.default_rng(1)
    runs = tuple(
        {
            tensor.name: generator.standard_normal(tensor.shape).astype(tensor.dtype.value)
            for tensor in graph.arguments
        }
        for _ in range(2)
    )
    found = expected_outputs(Oracle.ONNXRUNTIME, graph, model, SampleBatch(runs), folder=folder)
    for run, outputs in zip(runs, found.values, strict=True):
        meant = execute(graph, run)
        assert list(outputs) == list(meant)
        for name, array in meant.items():
            assert (outputs[name].dtype, outputs[name].shape) == (array.dtype, array.shape)
            np.testing.assert_allclose(outputs[name], array, rtol=2e-3, atol=1e-3)
    return dict(found.values[0])


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_floats_of_other_widths(dtype: Any) -> None:
    """A port is float32 for the C, and what the file says for onnxruntime."""
    nodes = [helper.make_node("Tanh", ["x"], ["y"])]
    model = model_of(nodes, [typed("x", (1, 3), dtype)], [typed("y", (1, 3), dtype)])
    assert agreed(graph_of(model), model)["y"].dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_states_are_handed_on(dtype: Any) -> None:
    """An input is zeros in the first run of a sample, and then what its output was."""
    nodes = [
        helper.make_node("Add", ["past", "x"], ["present"]),
        helper.make_node("Neg", ["present"], ["y"]),
    ]
    ports = {name: typed(name, (1, 3), dtype) for name in ("past", "x", "y", "present")}
    inputs, outputs = [ports["past"], ports["x"]], [ports["present"], ports["y"]]
    model = model_of(nodes, inputs, outputs)
    graph = BindStates(states("past=present"))(graph_of(model))
    given = np.arange(18, dtype=np.float32).reshape(6, 1, 3)
    samples = SampleBatch(tuple({"x": x} for x in given), steps=3)
    found = expected_outputs(Oracle.ONNXRUNTIME, graph, model, samples).values
    sums = np.concatenate([np.cumsum(part, axis=0) for part in (given[:3], given[3:])])
    np.testing.assert_array_equal([outputs["y"] for outputs in found], -sums)
    assert [list(outputs) for outputs in found] == [["y"]] * 6


def test_open_extents_are_those_of_the_graph() -> None:
    """The file says none: onnxruntime is given arrays of the extents that were chosen."""
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    model = model_of(nodes, [typed("x", ("batch", "length"))], [typed("y", ("batch", "length"))])
    graph = graph_of(model, dims={"length": 5})
    assert agreed(graph, model)["y"].shape == (1, 5)


def test_sequences_and_what_has_no_elements() -> None:
    """The tensors of a sequence are ports of their own, and what is empty is no port."""
    sequence = helper.make_tensor_sequence_value_info("parts", TensorProto.FLOAT, ("n",))
    twice = helper.make_tensor_sequence_value_info("twice", TensorProto.FLOAT, ("n",))
    body = helper.make_graph(
        [helper.make_node("Add", ["part", "part"], ["sum"])],
        "body", [typed("part", ("n",))], [typed("sum", ("n",))],
    )  # fmt: skip
    nodes = [
        helper.make_node("SequenceMap", ["parts"], ["twice"], body=body),
        helper.make_node("Concat", ["x", "none"], ["y"], axis=0),
        helper.make_node("Abs", ["none"], ["nothing"]),
    ]
    inputs = [sequence, typed("none", (0,)), typed("x", (2,))]
    model = model_of(nodes, inputs, [typed("nothing", (0,)), twice, typed("y", (2,))])
    graph = graph_of(model, input_shapes={"parts.0": (2,), "parts.1": (3,)})
    assert list(agreed(graph, model)) == ["twice.0", "twice.1", "y"]


def test_maps_are_tensors() -> None:
    """Of a ZipMap the tensor is compared, column by column in the order of its labels."""
    nodes = [ml_node("ZipMap", classlabels_int64s=[7, 3])]
    y = onnx.ValueInfoProto(name="y")
    held = y.type.sequence_type.elem_type.map_type
    held.key_type = TensorProto.INT64
    held.value_type.tensor_type.elem_type = TensorProto.FLOAT
    model = ml_model_of(nodes, [typed("x", (1, 2))], [y], 1)
    agreed(graph_of(model), model)


def test_strings_are_places() -> None:
    """Labels of onnxruntime are compared as places among those that the model has."""
    node = ml_node(
        "LinearClassifier", ("label", "scores"), coefficients=[1.0, -1.0, 2.0, 0.5],
        intercepts=[0.0, 0.1], classlabels_strings=["up", "down"],
    )  # fmt: skip
    label = helper.make_tensor_value_info("label", TensorProto.STRING, None)
    model = ml_model_of([node], [typed("x", (5, 2))], [label, "scores"], 1)
    assert set(agreed(graph_of(model), model)["label"].tolist()) <= {0, 1}


def test_values_in_another_file(tmp_path: Path) -> None:
    """Weights beside the model are found, wherever the process works."""
    weights = numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(3, 2), "w")
    (tmp_path / "weights.bin").write_bytes(weights.raw_data)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    made = onnx.load_model_from_string(model_of(nodes, [typed("x", (1, 3))], ["y"]))
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="weights.bin")
    made.graph.initializer.append(weights)
    path = tmp_path / "net.onnx"
    path.write_bytes(made.SerializeToString())
    graph = from_onnx(path).graph
    assert graph is not None
    agreed(graph, path.read_bytes(), tmp_path)


def test_nothing_is_optimised() -> None:
    """The level is pinned: what depends on the CPU is no reference."""
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], [typed("x", (1,))], ["y"])
    session = OnnxRuntimeSession(model, Ports(("x",), ("y",)))
    options = session._session.get_session_options()
    assert options.graph_optimization_level.name == "ORT_DISABLE_ALL"
    assert options.intra_op_num_threads == 1


def test_refusal_of_onnxruntime() -> None:
    """What microtir reads and onnxruntime does not is a diagnostic with its reason."""
    model = model_of([helper.make_node("ArgMax", ["x"], ["y"])], [typed("x", (2, 2))], ["y"])
    x = SampleBatch(({"x": np.zeros((2, 2), np.float32)},))
    with pytest.raises(ToolError) as caught:
        expected_outputs(Oracle.ONNXRUNTIME, graph_of(model), model, x, file="max.onnx")
    assert "'onnxruntime' (onnxruntime without graph optimisations) cannot run" in caught.value.what
    assert "Type Error" in caught.value.what
    assert caught.value.where == "max.onnx"


def test_integers_of_four_bits_are_refused() -> None:
    """Numpy has no such array to hand over."""
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)]
    x = helper.make_tensor_value_info("x", TensorProto.INT4, (2,))
    model = model_of(nodes, [x], ["y"])
    given = SampleBatch(({"x": np.zeros(2, np.int8)},))
    with pytest.raises(ToolError, match=r"input 'x' is a tensor\(int4\)"):
        expected_outputs(Oracle.ONNXRUNTIME, graph_of(model), model, given)


@pytest.mark.parametrize("path", [INT8, FLOAT])
def test_litert(path: Path) -> None:
    """LiteRT's reference kernels agree with the meaning of the graph."""
    graph = from_tflite(path).graph
    assert graph is not None
    (x,) = graph.arguments
    generator = np.random.default_rng(2)
    values = (generator.standard_normal((3, *x.shape)) * 30).astype(x.dtype.value)
    given = SampleBatch(tuple({x.name: value} for value in values))
    found = expected_outputs(Oracle.LITERT, graph, path.read_bytes(), given)
    for run, outputs in zip(given.values, found.values, strict=True):
        for name, array in execute(graph, run).items():
            # Its fully connected layers round once, and microtir's twice, as tflite-micro's.
            is_float = array.dtype.kind == "f"
            np.testing.assert_allclose(
                outputs[name].astype(float), array.astype(float), atol=1e-5 if is_float else 1
            )


def test_states_of_litert() -> None:
    """Each sample begins with the state of the file."""
    model = running_sum(np.array([[3.0, -7.5]], np.float32))
    graph = from_tflite(model).graph
    assert graph is not None
    (x,) = graph.arguments
    runs = tuple({x.name: np.full(x.shape, n, np.float32)} for n in range(6))
    given = SampleBatch(runs, steps=3)
    found = expected_outputs(Oracle.LITERT, graph, model, given)
    meant = [o for sample in given.samples() for o in execute_steps(graph, sample)]
    for outputs, wanted in zip(found.values, meant, strict=True):
        for name, array in wanted.items():
            np.testing.assert_array_equal(outputs[name], array)


def test_formats() -> None:
    """Who reads the file is said, and named as the fix."""
    check_format(Oracle.REFERENCE, "m.onnx", "ONNX")
    check_format(Oracle.ONNXRUNTIME, "m.onnx", "ONNX")
    check_format(Oracle.LITERT, "m.tflite", "TFLite")
    for oracle in (Oracle.TFLM, Oracle.LITERT):
        with pytest.raises(UsageError, match="is a model in ONNX") as caught:
            check_format(oracle, "m.onnx", "ONNX")
        assert caught.value.fix == "use --oracle onnxruntime"
    with pytest.raises(UsageError, match="runs only ONNX models") as caught:
        check_format(Oracle.ONNXRUNTIME, "m.tflite", "TFLite")
    assert caught.value.legal == "reference, tflm, litert"
