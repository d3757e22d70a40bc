"""Loops: the steps of GRUs and simple cells are integers, calibrated over all turns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import microtir
from microtir import host
from microtir.config import Numerics
from microtir.dtype import DType
from microtir.frontend import from_onnx, from_tflite
from microtir.graph.ir import Array, Graph
from microtir.module.ir_module import IRModule
from microtir.operators.control.definition import Control, EndRepeat, Repeat
from microtir.quantise import LayerWidth, Quantised, QuantiseOptions, Width, quantise
from microtir.rewrite.reference import execute
from microtir.rewrite.requests.numerics import ChooseNumerics
from microtir.writers import tflite_bytes
from tests.support.float_networks import floats
from tests.support.litert import run_litert
from tests.support.tflm import run_tflm

_STEPS, _INPUTS, _UNITS = 12, 3, 5
_GATES = {"GRU": 3, "RNN": 1}


def _network(kind: str, *, whole: bool = False, reset_first: bool = False) -> Graph:
    """Return a recurrent layer of ONNX that gives its last step, or all of them."""
    from onnx import TensorProto, helper, numpy_helper

    rows = _GATES[kind] * _UNITS
    constants = {
        "w": floats(1, 1, rows, _INPUTS), "r": floats(2, 1, rows, _UNITS, spread=0.5),
        "b": floats(3, 1, 2 * rows, spread=0.3),
    }  # fmt: skip
    attributes: dict[str, Any] = {"hidden_size": _UNITS}
    if kind == "GRU":
        attributes["linear_before_reset"] = int(not reset_first)
    outputs = ["y"] if whole else ["", "y"]
    layer = helper.make_node(kind, ["x", *constants], outputs, **attributes)
    shape = (_STEPS, 1, 1, _UNITS) if whole else (1, 1, _UNITS)
    model = helper.make_model(
        helper.make_graph(
            [layer], "net",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, (_STEPS, 1, _INPUTS))],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
            [numpy_helper.from_array(array, name) for name, array in constants.items()],
        ), opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
    )  # fmt: skip
    graph = from_onnx(model.SerializeToString()).graph
    assert graph is not None
    return graph


def _quantised(graph: Graph, options: QuantiseOptions | None = None) -> Quantised:
    return quantise(graph, {"x": floats(4, 40, _STEPS, 1, _INPUTS)}, options)


def _inputs(graph: Graph) -> dict[str, Array]:
    rng = np.random.default_rng(3)
    return {
        t.name: rng.integers(t.dtype.min, t.dtype.max, t.shape, t.dtype.value, endpoint=True)
        for t in graph.inputs
    }


@pytest.mark.parametrize(
    ("kind", "reset_first", "whole", "width", "least"),
    [
        ("GRU", False, True, Width.INT8, 18.0),
        ("GRU", True, False, Width.INT8, 18.0),
        ("GRU", False, False, Width.INT16, 35.0),
        ("RNN", False, False, Width.INT8, 18.0),
        ("RNN", False, True, Width.INT16, 35.0),
    ],
)
def test_steps_are_integers(
    *, kind: str, reset_first: bool, whole: bool, width: Width, least: float
) -> None:
    """The loop stays one, its loss is bounded, and C, tflite-micro and LiteRT agree on the bits."""
    result = _quantised(
        _network(kind, whole=whole, reset_first=reset_first), QuantiseOptions(width)
    )
    assert not result.floats
    assert result.layers[-1].sqnr >= least
    assert not any(t.dtype is DType.FLOAT32 for t in result.graph.tensors())
    assert sum(isinstance(node.op, Repeat) for node in result.graph.nodes) == 1
    inputs = _inputs(result.graph)
    expected = execute(result.graph, inputs)["y"]
    program = host.load(microtir.build(IRModule(graph=result.graph)), opt_level=0)
    np.testing.assert_array_equal(program.run(inputs)["y"], expected)
    file = tflite_bytes(result.graph)
    np.testing.assert_array_equal(run_tflm(file, inputs["x"])[0], expected)
    again = from_tflite(file).graph
    assert again is not None and not any(isinstance(node.op, Control) for node in again.nodes)
    by_litert = execute(ChooseNumerics(Numerics.TFLITE_REF)(again), inputs)["y"]
    np.testing.assert_array_equal(run_litert(file, inputs["x"])[0], by_litert)


def test_a_state_has_one_scale_that_holds_all_turns() -> None:
    """What the last turn leaves is less than what others do, and the range is that of all."""
    graph = _network("RNN")
    samples = floats(4, 40, _STEPS, 1, _INPUTS)
    samples[:, -1] *= 0.01
    result = quantise(graph, {"x": samples}, QuantiseOptions(rounding_work=0.0))
    end = next(node for node in result.graph.nodes if isinstance(node.op, EndRepeat))
    state = next(t for t in end.outputs if t.dtype is DType.INT8)
    seen = {r.name: r.seen for r in result.tensors}
    last = max(abs(end) for end in seen["y"])
    assert state.type.quant.scale * 127 > last
    types = {t.type for t in (*end.inputs, *end.outputs) if t.shape == state.shape}
    assert types == {state.type}


def test_a_loop_with_a_layer_of_floats_remembers_floats() -> None:
    """What computes the state stays in floats by its name, so the memory does; others do not."""
    graph = _network("RNN")
    whole = _quantised(graph)
    names = [layer.name for layer in whole.layers]
    tanh = next(node for node in whole.graph.nodes if node.op.name == "tanh")
    result = _quantised(graph, QuantiseOptions(layers=(LayerWidth(tanh.name, Width.FLOAT),)))
    assert [layer.name for layer in result.floats] == [tanh.name]
    assert 0 < len(result.layers) < len(names)
    end = next(node for node in result.graph.nodes if isinstance(node.op, EndRepeat))
    assert DType.INT8 not in {t.dtype for t in end.outputs}
    inputs = _inputs(result.graph)
    program = host.load(microtir.build(IRModule(graph=result.graph)), opt_level=0)
    expected, actual = execute(result.graph, inputs)["y"], program.run(inputs)["y"]
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
