"""Recurrent layers in ONNX: LSTMs are those of the graph, others made of its operators."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from onnx import helper

import microtir
from microtir.config import CompilationConfig
from microtir.frontend import from_onnx
from microtir.graph.ir import Graph
from microtir.operators.indexing.definition import Gather
from microtir.operators.movement.definition import StridedSlice
from microtir.operators.recurrent.definition import Lstm
from tests.frontend.onnx.test_readers import check
from tests.support.onnx_models import Array, model_of, typed
from tests.support.seeds import seeds

pytestmark = pytest.mark.tools

DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


def layer(
    seed: int, direction: str = "forward", **attributes: Any
) -> tuple[bytes, dict[str, Array]]:
    """An LSTM with or without a bias and first states, and its inputs."""
    rng, ways = np.random.default_rng(seed), DIRECTIONS[direction]
    steps, batch, width, units = (int(n) for n in rng.integers(1, (9, 4, 7, 7)))
    is_by_batch = int(attributes.get("layout", 0))

    def drawn(*shape: int) -> Array:
        return np.asarray(rng.standard_normal(shape), np.float32)

    first = (batch, ways, units) if is_by_batch else (ways, batch, units)
    inputs = {"x": drawn(*((batch, steps) if is_by_batch else (steps, batch)), width)}
    constants = {"w": drawn(ways, 4 * units, width), "r": drawn(ways, 4 * units, units)}
    names = ["x", "w", "r", "", "", "", ""]
    if rng.random() < 0.7:
        constants["b"], names[3] = drawn(ways, 8 * units), "b"
    if rng.random() < 0.5:
        inputs |= {"h": drawn(*first), "c": drawn(*first)}
        names[5:] = ["h", "c"]
    if attributes.pop("peepholes", False):
        constants["p"] = drawn(ways, 3 * units)
        names.append("p")
    node = helper.make_node(
        "LSTM", names, ["y", "y_h", "y_c"], direction=direction, hidden_size=units, **attributes
    )
    ports = [typed(name, values) for name, values in inputs.items()]
    return model_of([node], ports, ["y", "y_h", "y_c"], constants), inputs


def of(model: bytes) -> Graph:
    """The graph of a file."""
    graph = from_onnx(model).graph
    assert graph is not None
    return graph


@pytest.mark.soak
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_lstms_are_layers_of_the_graph(direction: str) -> None:
    """One for each direction, with all outputs, equal to onnxruntime's."""
    for seed in seeds(0, 8):
        model, inputs = layer(seed, direction)
        kinds = Counter(type(node.op) for node in of(model).nodes)
        assert kinds[Lstm] == DIRECTIONS[direction]
        check(model, **inputs)


ODD: tuple[dict[str, Any], ...] = (
    {"clip": 0.5},
    {"peepholes": True},
    {"activations": ["Sigmoid", "Relu", "Tanh"]},
)


@pytest.mark.parametrize("attributes", ODD)
def test_other_cells_are_written_out(attributes: dict[str, Any]) -> None:
    """The graph's LSTM has none of these."""
    model, inputs = layer(3, **attributes)
    assert not any(isinstance(node.op, Lstm) for node in of(model).nodes)
    check(model, **inputs)


def as_pytorch(steps: int) -> bytes:
    """An LSTM, the step of which PyTorch's exporter takes the last by Gather, and a dense layer."""
    rng, units = np.random.default_rng(4), 6
    shapes = {
        "w": (1, 4 * units, 3),
        "r": (1, 4 * units, units),
        "b": (1, 8 * units),
        "d": (2, units),
    }
    constants = {n: rng.standard_normal(s).astype(np.float32) * 0.5 for n, s in shapes.items()}
    constants["last"] = np.array(-1)
    nodes = [
        helper.make_node("Transpose", ["x"], ["by_time"], perm=[1, 0, 2]),
        helper.make_node("LSTM", ["by_time", "w", "r", "b"], ["all", "h", "c"], hidden_size=units),
        helper.make_node("Squeeze", ["all", "one"], ["shown"]),
        helper.make_node("Transpose", ["shown"], ["by_batch"], perm=[1, 0, 2]),
        helper.make_node("Gather", ["by_batch", "last"], ["newest"], axis=1),
        helper.make_node("Gemm", ["newest", "d"], ["y"], transB=1),
    ]
    x = np.zeros((1, steps, 3), np.float32)
    return model_of(nodes, [typed("x", x)], ["y"], {**constants, "one": np.array([1])})


def test_an_lstm_of_pytorch_runs_one_step_at_a_time() -> None:
    """Its last step of 30 runs has the bits of one run over 30 steps."""
    module, config = from_onnx(as_pytorch(30)), CompilationConfig(targets="c -mcpu=cortex-m4")
    whole, steps = (
        microtir.host.load(microtir.build(module, config.with_(stateful=one)))
        for one in (False, True)
    )
    x = np.random.default_rng(5).standard_normal((1, 30, 3)).astype(np.float32)
    runs = steps.run_sequence([{"x": x[:, [step]]} for step in range(30)])
    np.testing.assert_array_equal(runs[-1]["y"], whole.run({"x": x})["y"])


@pytest.mark.parametrize(
    ("places", "is_slice"),
    [
        (-1, True),
        ([2], True),
        ([0, 2, 4], True),
        ([[3, 2], [1, 0]], True),
        ([1, 2, 4], False),
        ([1, 1], False),
    ],
)
def test_known_indices_that_are_equally_far_apart_are_a_slice(places: Any, is_slice: bool) -> None:
    """Whatever shape they have; their elements need no table."""
    node = helper.make_node("Gather", ["x", "places"], ["y"], axis=1)
    x = np.arange(30, dtype=np.float32).reshape(2, 5, 3)
    model = model_of([node], [typed("x", x)], ["y"], {"places": np.array(places)})
    kinds = {type(node.op) for node in of(model).nodes}
    assert (StridedSlice in kinds, Gather in kinds) == (is_slice, not is_slice)
    check(model, x=x)
