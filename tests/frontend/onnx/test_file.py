"""ONNX files that are damaged, hostile, or open: a diagnostic, never a traceback."""

from __future__ import annotations

import contextlib
import random
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import external_data_helper, helper, numpy_helper

from microtir.errors import MicrotirError, ModelFileError, ToolError, UsageError
from microtir.frontend import check, from_onnx, from_tflite, read_model
from tests.support.onnx_models import model_of, typed
from tests.support.seeds import seeds

pytestmark = pytest.mark.tools

TRAINING = "ai.onnx.preview.training"
RELU = helper.make_node("Relu", ["x"], ["y"])


def convolution() -> bytes:
    """Return a model with weights, attributes and shapes that follow from each other."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Reshape", ["c", "s"], ["r"]),
        helper.make_node("Gemm", ["r", "g"], ["y"]),
    ]
    constants = {
        "w": np.ones((2, 1, 3, 3), np.float32),
        "s": np.array([1, -1]),
        "g": np.ones((72, 3), np.float32),
    }
    return model_of(nodes, [typed("x", (1, 1, 6, 6))], ["y"], constants)


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds(0, 60))
def test_mutated_bytes(seed: int) -> None:
    """Any bytes are a model or refused with a diagnostic."""
    rng = random.Random(seed)
    data = bytearray(convolution())
    for _ in range(rng.randint(1, 6)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    cut = bytes(data[: rng.randint(1, len(data))] if rng.random() < 0.3 else data)
    with contextlib.suppress(MicrotirError):
        from_onnx(cut)


@pytest.mark.parametrize("data", [b"", b"\0" * 64, b"\x08\x0a", b"not a model at all"])
def test_other_bytes(data: bytes) -> None:
    """What is no model is said to be none."""
    with pytest.raises(ModelFileError):
        from_onnx(data)


def test_an_input_that_nothing_computes() -> None:
    """A node that reads what nothing computes, or what follows from itself, is named."""
    for first in ("nowhere", "y"):
        nodes = [
            helper.make_node("Relu", ["later"], ["y"]),
            helper.make_node("Add", ["x", first], ["later"]),
        ]
        with pytest.raises(ModelFileError):
            from_onnx(model_of(nodes, [typed("x", (1, 4))], ["y"]))


@pytest.mark.parametrize("shape", [(0, 1, 6, 6), (1, 0, 6, 6), (1, 1, 0, 6)])
def test_images_without_elements(shape: tuple[int, ...]) -> None:
    """A convolution of nothing is refused, though its outputs would be known."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])]
    weights = np.ones((2, shape[1], 3, 3), np.float32)
    with pytest.raises(MicrotirError):
        from_onnx(model_of(nodes, [typed("x", shape)], ["y"], {"w": weights}))


def test_absurd_shapes() -> None:
    """A few words that ask for gigabytes are refused at once."""
    nodes = [
        helper.make_node("ConstantOfShape", ["s"], ["c"]),
        helper.make_node("Add", ["x", "c"], ["y"]),
    ]
    model = model_of(nodes, [typed("x", (1, 4))], ["y"], {"s": np.array([1 << 20, 1 << 20])})
    assert "1048576" in str(check(model)[0])
    tiled = [
        helper.make_node("Tile", ["c", "n"], ["t"]),
        helper.make_node("Add", ["x", "t"], ["y"]),
    ]
    constants = {"c": np.ones((4, 4), np.float32), "n": np.array([1 << 12, 1 << 12])}
    assert "a constant of" in str(check(model_of(tiled, [typed("x", (1, 4))], ["y"], constants))[0])


def saved(folder: Path, location: str) -> Path:
    """Return a model whose weights are said to lie in a file."""
    model = onnx.load_model_from_string(convolution())
    tensor = model.graph.initializer[0]
    data = numpy_helper.to_array(tensor).tobytes()
    external_data_helper.set_external_data(tensor, location, 0, len(data))
    tensor.ClearField("raw_data")
    (folder / "weights.bin").write_bytes(data)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_external_data(tmp_path: Path) -> None:
    """Values lie in a file of the model's folder, and in no other one."""
    inside = tmp_path / "inside"
    inside.mkdir()
    path = saved(inside, "weights.bin")
    assert from_onnx(path).graph is not None
    (inside / "weights.bin").rename(tmp_path / "weights.bin")
    for location in ("../weights.bin", str(tmp_path / "weights.bin"), "missing.bin", "."):
        (problem,) = check(saved(inside, location))
        assert "its values lie in" in problem.what, location
    with pytest.raises(ModelFileError):
        from_onnx(path.read_bytes())


def test_values_that_are_too_short() -> None:
    """An initialiser whose bytes are not its shape's is refused."""
    model = onnx.load_model_from_string(convolution())
    model.graph.initializer[0].raw_data = b"\0" * 7
    with pytest.raises(ModelFileError):
        from_onnx(model.SerializeToString())


@pytest.mark.parametrize("text", [b"input0", b"output0", b"Relu", b"made"])
def test_texts_that_are_no_texts(text: bytes) -> None:
    """The package `onnx` gives a name as bytes where it is not UTF-8."""
    node = helper.make_node("Relu", ["input0"], ["output0"])
    model = model_of([node], [typed("input0", (1, 4))], [typed("output0", (1, 4))])
    with pytest.raises(ModelFileError, match=r"is not text: b'.xff") as caught:
        from_onnx(model.replace(text, b"\xff" + text[1:]))
    assert caught.value.legal == "UTF-8"


def test_open_dimensions() -> None:
    """The first one is a batch of 1; others are given by name, or with the whole shape."""
    model = model_of([RELU], [typed("x", ("batch", "length", 3))], ["y"])
    (problem,) = check(model)
    assert "'length'" in problem.what
    assert "--dim length=16" in str(problem.for_command_line().fix)
    graph = from_onnx(model, dims={"length": 7}).graph
    assert graph is not None
    assert graph.inputs[0].shape == (1, 7, 3)
    given = from_onnx(model, input_shapes={"x": (2, 5, 3)}).graph
    assert given is not None
    assert given.inputs[0].shape == (2, 5, 3)
    for wrong in ({"x": (2, 5, 4)}, {"z": (2, 5, 3)}):
        with pytest.raises(UsageError):
            from_onnx(model, input_shapes=wrong)
    with pytest.raises(UsageError):
        from_onnx(model, dims={"width": 3})


def test_formats_are_told_apart(tmp_path: Path) -> None:
    """One function reads both; what is said of the other format is refused."""
    path = tmp_path / "model.bin"
    path.write_bytes(model_of([RELU], [typed("x", (1, 4))], ["y"]))
    assert read_model(path).graph is not None
    with pytest.raises(UsageError):
        read_model(path, signature="serving_default")
    with pytest.raises(ModelFileError) as caught:
        from_tflite(path)
    assert "an ONNX model" in caught.value.what


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person without the extra is told how to get it."""
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ToolError) as caught:
        from_onnx(b"\x08\x0a")
    assert "onnx" in str(caught.value.fix)


def test_types_that_are_not_supported() -> None:
    """Texts are refused by name, halves and doubles of initialisers are floats."""
    text = helper.make_tensor_value_info("x", onnx.TensorProto.STRING, [1])
    assert "STRING" in str(check(model_of([RELU], [text], ["y"]))[0])
    nodes = [helper.make_node("Add", ["x", "c"], ["y"])]
    model = model_of(nodes, [typed("x", (1, 4))], ["y"], {"c": np.ones(4, np.float16)})
    assert isinstance(check(model), tuple)


@pytest.mark.parametrize(
    ("operator", "inputs", "advice"),
    [
        ("ImageDecoder", 1, "decode images in the application"),
        ("Momentum", 5, "does not learn"),
    ],
)
def test_advice_for_what_is_not_computed(operator: str, inputs: int, advice: str) -> None:
    """The application does it, or the model is exported without it."""
    is_of_training = operator == "Momentum"
    numbers = {"alpha": 0.5, "beta": 0.5, "norm_coefficient": 0.5, "mode": "standard"}
    node = helper.make_node(operator, ["x"] * inputs, ["y"], domain=TRAINING * is_of_training)
    node.attribute.extend(
        helper.make_attribute(*number) for number in numbers.items() if is_of_training
    )
    (problem,) = check(model_of([node], [typed("x", (1, 4))], ["y"], domains={TRAINING: 1}))
    assert advice in str(problem.fix)


def test_old_operator_sets() -> None:
    """An old operator set is read as far as its operators have not changed since."""
    assert from_onnx(model_of([RELU], [typed("x", (1, 4))], ["y"], opset=6)).graph is not None
    nodes = [RELU, helper.make_node("Add", ["y", "y"], ["z"])]
    (problem,) = check(model_of(nodes, [typed("x", (1, 4))], ["z"], opset=6))
    assert "operator set is 6, and Add has changed since" in problem.what
    yes, no = (
        helper.make_graph([node], "branch", [], [typed(node.output[0], (1, 4))])
        for node in (
            helper.make_node("Relu", ["x"], ["yes"]),
            helper.make_node("Mul", ["x", "x"], ["no"]),
        )
    )
    choice = helper.make_node("If", ["c"], ["y"], then_branch=yes, else_branch=no)
    inputs = [typed("c", (1,), np.bool_), typed("x", (1, 4))]
    (problem,) = check(model_of([choice], inputs, ["y"], opset=6))
    assert "Mul has changed" in problem.what


def test_outputs_without_elements() -> None:
    """An output that holds nothing is left out beside others, and refused alone."""
    empty = helper.make_node("Slice", ["x", "begin", "begin"], ["nothing"])
    constants, inputs = {"begin": np.array([1])}, [typed("x", (2, 4))]
    graph = from_onnx(model_of([RELU, empty], inputs, ["nothing", "y"], constants)).graph
    assert graph is not None
    assert [tensor.name for tensor in graph.outputs] == ["y"]
    (problem,) = check(model_of([empty], inputs, ["nothing"], constants))
    assert "no elements" in problem.what
