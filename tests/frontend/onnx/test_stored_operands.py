"""Operators on integers that a file quantised, as `QuantFormat.QOperator` leaves them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from dataclasses import fields as fields_of
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import microtir
from microtir import frontend, host
from microtir.errors import MicrotirError
from microtir.frontend import from_onnx
from microtir.frontend.onnx.refusals import ONNX_ADVICE
from microtir.graph.ir import Graph
from microtir.rewrite.reference import execute
from tests.frontend.onnx.test_quantised import Parts
from tests.frontend.onnx.test_several_outputs import floats_of
from tests.support.onnx_models import Array, model_of, run_onnxruntime, typed, with_inferred_outputs

pytestmark = pytest.mark.tools

TYPES = (np.int8, np.uint8, np.int16, np.uint16)
NUMBERS = dict(zip(TYPES, (TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16,
                           TensorProto.UINT16), strict=True))  # fmt: skip
SHAPE = (1, 4, 6, 5)


@dataclass(frozen=True)
class Kind:
    """An operator on integers.

    Args:
        constants: operands behind the integers; those that are floats are of the integers' type.
        attributes: of the node.
        shape: of the integers.
        keeps: the result is integers of the same scale, without a float in between.
    """

    constants: Mapping[str, Array] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    shape: tuple[int, ...] = SHAPE
    keeps: bool = True


def places(*values: int) -> Array:
    """Return a list of integers."""
    return np.array(values, np.int64)


PADS = places(0, 0, 1, 2, 0, 0, 0, 1)
NUMBER = np.array(7, np.float32)
MOVES_AND_PICKS: Mapping[str, Kind] = {
    "Pad": Kind({"p": PADS}),
    "Pad by a number": Kind({"p": PADS, "v": NUMBER}),
    "Pad and cut": Kind({"p": places(0, 0, -1, 2, 0, 1, 0, -1), "v": NUMBER}),
    "Pad edge": Kind({"p": PADS}, {"mode": "edge"}),
    "Pad reflect": Kind({"p": PADS}, {"mode": "reflect"}),
    "Pad wrap": Kind({"p": PADS}, {"mode": "wrap"}),
    "MaxPool": Kind({}, {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 0]}),
    "MaxPool line": Kind({}, {"kernel_shape": [3]}, (1, 4, 9)),
    "MaxPool volume": Kind({}, {"kernel_shape": [2, 2, 2]}, (1, 2, 4, 4, 4), keeps=False),
    "MaxPool gaps": Kind({}, {"kernel_shape": [2, 2], "dilations": [2, 2]}, keeps=False),
    "ReduceMax": Kind({"a": places(2)}),
    "ReduceMin": Kind({"a": places(1, 3)}, {"keepdims": 0}),
    "Gather": Kind({"i": places(1, 0)}, {"axis": 1}),
    "GatherElements": Kind({"i": np.zeros((1, 4, 2, 5), np.int64)}, {"axis": 2}),
    "GatherND": Kind({"i": np.array([[0, 1], [0, 2]])}),
    "ScatterND": Kind({"i": np.array([[0, 1]]), "u": np.arange(30.0).reshape(1, 6, 5)}),
    "ScatterElements": Kind({"i": np.ones((1, 4, 1, 5), np.int64), "u": np.ones((1, 4, 1, 5))},
                            {"axis": 2}),
    "Concat": Kind({"u": np.arange(30.0).reshape(1, 1, 6, 5)}, {"axis": 1}),
    "Resize": Kind({"": places(), "s": np.array([1, 1, 2, 1.5], np.float64)}),
    "Tile": Kind({"r": places(1, 2, 1, 2)}),
    "Expand": Kind({"r": places(3, 4, 6, 5)}),
    "Slice": Kind({"b": places(5), "e": places(-99), "a": places(2), "t": places(-2)}),
    "Transpose": Kind({}, {"perm": [0, 2, 3, 1]}),
    "Reshape": Kind({"r": places(1, 8, -1)}),
    "Squeeze": Kind({"a": places(0)}),
    "Unsqueeze": Kind({"a": places(0, 2)}),
    "Flatten": Kind(),
    "DepthToSpace": Kind({}, {"blocksize": 2}),
    "SpaceToDepth": Kind({}, {"blocksize": 2}, (1, 4, 6, 4)),
    "ReverseSequence": Kind({"n": places(2, 3, 1, 4)}, {}, (4, 4, 3)),
}  # fmt: skip
COUNTS: Mapping[str, Kind] = {
    "Max": Kind({"u": NUMBER}),
    "Min": Kind({"u": NUMBER}),
    "Clip": Kind({"u": NUMBER, "w": np.array(100, np.float32)}),
    "Relu": Kind(),
    "Add": Kind({"u": NUMBER}),
    "Sub": Kind({"u": NUMBER}),
    "Mul": Kind({"u": NUMBER}),
    "Div": Kind({"u": NUMBER}),
    "Mod": Kind({"u": NUMBER}),
    "Abs": Kind(),
    "Sign": Kind(),
    "BitwiseNot": Kind(),
    "CenterCropPad": Kind({"s": places(1, 3, 8, 5)}),
    "Resize linear": Kind({"": places(), "s": np.array([1, 1, 2, 4], np.float64)},
                          {"mode": "linear"}),
}  # fmt: skip


def operator_between(name: str, kind: Kind, dtype: Any, *, is_dequantised: bool) -> bytes:
    """Return a model that quantises, has an operator on the integers, and perhaps floats again."""
    info = np.iinfo(dtype)
    scale = np.array(0.05 if info.bits == 8 else 0.0003, np.float32)
    constants = {"scale": scale, "zero": np.array((info.min + 3 * info.max) // 4, dtype)}
    operands = ["q"]
    for label, array in kind.constants.items():
        operands.append(label)
        if label:
            is_size = name.startswith("Resize")
            of_node = np.float32 if is_size else dtype
            constants[label] = array if array.dtype == np.int64 else array.astype(of_node)
    operator = name.partition(" ")[0]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node(operator, operands, ["y"], **kind.attributes),
    ]
    outputs: list[Any] = [helper.make_tensor_value_info("y", NUMBERS[dtype], None)]
    if is_dequantised:
        nodes.append(helper.make_node("DequantizeLinear", ["y", "scale", "zero"], ["z"]))
        outputs = ["z"]
    return model_of(nodes, [typed("x", kind.shape)], outputs, constants)


def image(shape: tuple[int, ...]) -> Array:
    """Return values beyond what any of the types holds."""
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32) * 3


def graph_of(model: bytes) -> Graph:
    """Return the graph of a model."""
    graph = from_onnx(model).graph
    assert graph is not None
    return graph


@pytest.mark.parametrize("is_dequantised", [False, True], ids=["integers", "floats"])
@pytest.mark.parametrize("name", [*MOVES_AND_PICKS, *COUNTS])
def test_operators_on_integers(name: str, is_dequantised: bool) -> None:
    """Every type that onnxruntime takes is read, and gives the same to the bit."""
    kind = {**MOVES_AND_PICKS, **COUNTS}[name]
    x, taken = image(kind.shape), 0
    for dtype in TYPES:
        model = operator_between(name, kind, dtype, is_dequantised=is_dequantised)
        try:
            (want,) = run_onnxruntime(with_inferred_outputs(model), {"x": x})
        except Exception:  # noqa: BLE001  # it has no kernel for the type
            continue
        graph, taken = graph_of(model), taken + 1
        (got,) = execute(graph, {"x": x}).values()
        np.testing.assert_array_equal(got, want)
        if name in MOVES_AND_PICKS and kind.keeps and dtype in (np.int8, np.uint8):
            assert set(floats_of(graph)) <= {"transpose"}, dtype  # of what the caller gives
    assert taken


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
def test_places_of_integers(operator: str) -> None:
    """They are those of the real values."""
    x = image(SHAPE)
    for dtype in (np.int8, np.uint8):
        zero = np.array(3, dtype)
        nodes = [
            helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
            helper.make_node(operator, ["q"], ["y"], axis=1),
        ]
        outputs = [helper.make_tensor_value_info("y", TensorProto.INT64, None)]
        constants: dict[str, Array] = {"scale": np.array(0.1, np.float32), "zero": zero}
        model = model_of(nodes, [typed("x", SHAPE)], outputs, constants)
        (want,) = run_onnxruntime(model, {"x": x})
        graph = graph_of(model)
        np.testing.assert_array_equal(execute(graph, {"x": x})["y"], want)
        assert set(floats_of(graph)) <= {"transpose"}


def network(dtype: Any, *between: Any, **constants: Array) -> bytes:
    """Return two QLinearConv with nodes on integers between them, from `a` to `b`."""
    rng = np.random.default_rng(2)
    zero = np.array(9 if dtype is np.int8 else 137, dtype)
    held = {
        "s": np.array(0.04, np.float32), "z": zero,
        "w1": rng.integers(-90, 90, (4, 3, 3, 3)).astype(np.int8),
        "w2": rng.integers(-90, 90, (5, 4, 1, 1)).astype(np.int8),
        "ws": np.array(0.005, np.float32), "wz": np.array(0, np.int8), **constants,
    }  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("QLinearConv", ["q", "s", "z", "w1", "ws", "wz", "s", "z"], ["a"]),
        *between,
        helper.make_node("QLinearConv", ["b", "s", "z", "w2", "ws", "wz", "s", "z"], ["c"]),
        helper.make_node("DequantizeLinear", ["c", "s", "z"], ["y"]),
    ]
    return model_of(nodes, [typed("x", (1, 3, 8, 8))], ["y"], held)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8], ids=["int8", "uint8"])
def test_networks_of_integers(dtype: Any) -> None:
    """Convolutions before and behind a padding or a pool are of integers, in the C, too."""
    pool = helper.make_node("MaxPool", ["p"], ["b"], kernel_shape=[2, 2], strides=[2, 2])
    pad = helper.make_node("Pad", ["a", "pads", "z"], ["p"])
    model = network(dtype, pad, pool, pads=places(0, 0, 1, 1, 0, 0, 0, 2))
    x = image((1, 3, 8, 8))
    (want,) = run_onnxruntime(with_inferred_outputs(model), {"x": x})
    module = from_onnx(model)
    assert module.graph is not None
    assert set(floats_of(module.graph)) <= {"transpose"}  # of the image of the caller
    for got in (execute(module.graph, {"x": x}), host.load(microtir.build(module)).run({"x": x})):
        np.testing.assert_array_equal(got["y"], want)


@pytest.mark.parametrize("form", ["QLinearWhere", "Where"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8], ids=["int8", "uint8"])
def test_choices(form: str, dtype: Any) -> None:
    """Both operands get the scale of the result, and one of them is picked."""
    parts = Parts(np.random.default_rng(6), dtype)
    x, y = image(SHAPE), image(SHAPE)[..., ::-1].copy()
    names = [parts.quantised(name, f"{name}_real") for name in ("x", "y")]
    parts.constants["c"] = np.random.default_rng(7).random(SHAPE) < 0.5
    if form == "Where":
        parts.nodes.append(helper.make_node("Where", ["c", *names], ["z"]))
        output = parts.quantised("z", "result")
    else:
        scaling = [f"{name}_{part}" for name in names for part in ("q", "scale", "zero")]
        result = list(parts.scaling("result"))
        parts.nodes += [
            helper.make_node("QLinearWhere", ["c", *scaling, *result], ["z"],
                             domain="com.microsoft"),
            helper.make_node("DequantizeLinear", ["z", *result], ["real"]),
        ]  # fmt: skip
        output = "real"
    ports = [typed("x", SHAPE), typed("y", SHAPE)]
    domains = {"com.microsoft": 1}
    model = model_of(parts.nodes, ports, [output], parts.constants, domains=domains)
    (want,) = run_onnxruntime(model, {"x": x, "y": y})
    graph = graph_of(model)
    (got,) = execute(graph, {"x": x, "y": y}).values()
    np.testing.assert_array_equal(got, want)
    assert not floats_of(graph)


def test_advice_is_that_of_the_format() -> None:
    """A file in ONNX is not told to use a converter to another format."""
    kind = Kind({"": places(), "s": np.array([1, 1, 1.5, 1.5], np.float64)}, {"mode": "linear"})
    model = operator_between("Resize", kind, np.int8, is_dequantised=True)
    with pytest.raises(MicrotirError) as caught:
        from_onnx(model)
    assert "quant_format=QuantFormat.QDQ" in str(caught.value)
    advice = [problem.fix for problem in frontend.check(model)]
    fields = [getattr(ONNX_ADVICE, each.name) for each in fields_of(ONNX_ADVICE)]
    for text in (*advice, *fields):
        assert not any(word in str(text).lower() for word in ("tensorflow", "tflite", "convert"))
