"""Recurrent layers of TFLite files: what is read, and what is refused with a reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from microtir.frontend import from_tflite
from microtir.operators.common.attributes import Activation
from microtir.operators.common.tflite_schema import BuiltinOperator, TfliteActivation
from microtir.operators.recurrent.definition import Lstm, Svdf, gates_of
from microtir.operators.recurrent.tflite import SVDFOptions, UnidirectionalSequenceLSTMOptions
from microtir.rewrite.verify import verify
from microtir.writers.tflite import OPTIONAL_INPUT, TfliteBuilder
from tests.frontend.models import refusal

BATCH, STEPS, INPUTS, UNITS = 1, 3, 4, 2
OPTIONS = UnidirectionalSequenceLSTMOptions(TfliteActivation.TANH)

Change = Callable[[TfliteBuilder, list[int]], None]


def constant(builder: TfliteBuilder, name: str, *shape: int) -> int:
    """Add zeros."""
    return builder.tensor(name, shape, np.float32, np.zeros(shape, np.float32))


def lstm(
    change: Change | None = None, options: UnidirectionalSequenceLSTMOptions = OPTIONS
) -> bytes:
    """A float LSTM, whose inputs `change` may replace."""
    builder = TfliteBuilder()
    x = builder.tensor("x", (BATCH, STEPS, INPUTS), np.float32)
    inputs = [
        x,
        *(constant(builder, f"w{n}", UNITS, INPUTS) for n in range(4)),
        *(constant(builder, f"r{n}", UNITS, UNITS) for n in range(4)),
        *[OPTIONAL_INPUT] * 3,
        *(constant(builder, f"b{n}", UNITS) for n in range(4)),
        *[OPTIONAL_INPUT] * 2,
        builder.tensor("hidden", (BATCH, UNITS), np.float32, is_variable=True),
        builder.tensor("cell", (BATCH, UNITS), np.float32, is_variable=True),
        *[OPTIONAL_INPUT] * 4,
    ]
    if change is not None:
        change(builder, inputs)
    y = builder.tensor("y", (BATCH, STEPS, UNITS), np.float32)
    builder.operator(BuiltinOperator.UNIDIRECTIONAL_SEQUENCE_LSTM, inputs, [y], options)
    return builder.build([x], [y])


def svdf(rank: int = 2, activation: TfliteActivation = TfliteActivation.NONE) -> bytes:
    """A float SVDF of four filters without a bias."""
    builder = TfliteBuilder()
    x = builder.tensor("x", (1, 3), np.float32)
    inputs = [
        x,
        constant(builder, "features", 4, 3),
        constant(builder, "time", 4, 5),
        OPTIONAL_INPUT,
        builder.tensor("memory", (1, 20), np.float32, is_variable=True),
    ]
    y = builder.tensor("y", (1, 4 // max(rank, 1)), np.float32)
    builder.operator(BuiltinOperator.SVDF, inputs, [y], SVDFOptions(rank, activation))
    return builder.build([x], [y])


def test_an_lstm_has_its_states_as_inputs_and_outputs() -> None:
    """Gates are in the order of the file: input, forget, cell, output."""
    options = replace(OPTIONS, cell_clip=2.5)
    graph = from_tflite(lstm(options=options)).graph
    assert graph is not None
    verify(graph)
    node = graph.nodes[0]
    assert node.op == Lstm(time_major=False, cell_clip=2.5)
    assert [t.name for t in node.inputs[:3]] == ["x", "hidden", "cell"]
    assert [[t.name for t in gate] for gate in gates_of(node)] == [
        [f"w{n}", f"r{n}", f"b{n}"] for n in range(4)
    ]
    assert [t.shape for t in node.outputs] == [(1, 3, 2), (1, 2), (1, 2)]
    assert [state.name for state in graph.states] == ["hidden", "cell"]


def test_an_svdf_has_its_memory_as_input_and_output() -> None:
    """An activation of floats is an attribute."""
    graph = from_tflite(svdf(2, TfliteActivation.RELU)).graph
    assert graph is not None
    verify(graph)
    node = graph.nodes[0]
    assert node.op == Svdf(2, Activation.RELU)
    assert [t.name for t in node.inputs] == ["x", "memory", "features", "time"]
    assert [t.shape for t in node.outputs] == [(1, 2), (1, 20)]


def given(position: int, *shape: int) -> Change:
    """Put a constant at a position of the inputs."""

    def change(builder: TfliteBuilder, inputs: list[int]) -> None:
        inputs[position] = constant(builder, "given", *shape)

    return change


def without_input_gate(_builder: TfliteBuilder, inputs: list[int]) -> None:
    """Leave the weights of the input gate out."""
    inputs[1] = OPTIONAL_INPUT


REFUSED = {
    "it has peepholes": lstm(given(9, UNITS)),
    "it has a projection": lstm(given(16, 1, UNITS)),
    "it has layer normalisation": lstm(given(21, UNITS)),
    "its input and forget gates are coupled": lstm(without_input_gate),
    "input 18 'given' does not keep its value": lstm(given(18, BATCH, UNITS)),
    "its activation is RELU": lstm(options=replace(OPTIONS, activation=TfliteActivation.RELU)),
    "its recurrent weights are diagonals": lstm(
        options=replace(OPTIONS, diagonal_recurrent_tensors=True)
    ),
    "cell_clip is -1.0": lstm(options=replace(OPTIONS, cell_clip=-1.0)),
    "cell_clip is nan": lstm(options=replace(OPTIONS, cell_clip=float("nan"))),
    "input 4 has the shape (2, 3)": lstm(given(2, UNITS, 3)),
    "input 13 has the shape (3,)": lstm(given(14, 3)),
    "rank 3 of 4 filters": svdf(3),
    "rank 0 of 4 filters": svdf(0),
    "its fused activation is TANH": svdf(2, TfliteActivation.TANH),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused(text: str) -> None:
    """Each is named, with what is legal."""
    message = refusal(REFUSED[text])
    assert text in message
    assert "expected: " in message


def with_initial_memory(when: str) -> bytes:
    """An SVDF whose memory begins with what DEQUANTIZE makes of a constant."""
    builder = TfliteBuilder()
    data = np.arange(-10, 10, dtype=np.int8).reshape(1, 20)
    first = builder.tensor("first", data.shape, np.int8, data, [0.5], [2])
    memory = builder.tensor("memory", data.shape, np.float32, is_variable=True)
    x = builder.tensor("x", (1, 3), np.float32)
    weights = [constant(builder, "features", 4, 3), constant(builder, "time", 4, 5)]
    y = builder.tensor("y", (1, 2), np.float32)
    begin = (BuiltinOperator.DEQUANTIZE, [first], [memory], None)
    step = (
        BuiltinOperator.SVDF,
        [x, *weights, OPTIONAL_INPUT, memory],
        [y],
        SVDFOptions(2, TfliteActivation.NONE),
    )
    for operator in [begin, step] if when == "before" else [step, begin]:
        builder.operator(*operator)
    return builder.build([x], [y])


def test_a_variable_tensor_may_begin_with_a_constant() -> None:
    """LiteRT dequantises it in the first run; here it is the state's initial value."""
    graph = from_tflite(with_initial_memory("before")).graph
    assert graph is not None
    verify(graph)
    assert [node.op.name for node in graph.nodes if node.op.name == "dequantize"] == []
    (state,) = graph.states
    want = (np.arange(-10, 10, dtype=np.float32) - 2) / 2
    np.testing.assert_array_equal(state.initial.reshape(-1), want)


def test_an_initial_value_behind_the_first_use_is_refused() -> None:
    """It would be read before it is there."""
    message = refusal(with_initial_memory("behind"))
    assert "it initialises 'memory' after other operators have used this variable" in message
    assert "expected: variables that are initialised before all reads and writes" in message
