"""Variables of TFLite files: resources, their initial values, and what a run leaves in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from microtir.frontend import check, from_tflite
from microtir.frontend.tflite_variables import CallOnceOptions
from microtir.graph.ir import Graph
from microtir.operators.arithmetic.tflite import AddOptions
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.rewrite.optimise import RemoveDeadNodes
from microtir.rewrite.reference import execute_steps
from microtir.rewrite.verify import verify
from microtir.writers.tflite import TfliteBuilder
from tests.frontend.models import refusal
from tests.support.seeds import seeds
from tests.support.stateful import (
    KINDS,
    handle,
    initialised,
    random_model,
    running_sum,
    values_of,
)

Code = BuiltinOperator
Array = npt.NDArray[Any]

STEPS = [np.array([[step, -1.5]], np.float32) for step in range(60)]


def graph_of(data: bytes) -> Graph:
    """The graph of a model, verified."""
    graph = from_tflite(data).graph
    assert graph is not None
    verify(graph)
    return graph


def by_tflm(data: bytes, steps: Sequence[Array]) -> list[Array]:
    """The outputs of tflite-micro, run by run."""
    from tflite_micro import runtime

    interpreter = runtime.Interpreter.from_bytes(data, arena_size=1 << 16)
    outputs = []
    for values in steps:
        interpreter.set_input(values, 0)
        interpreter.invoke()
        outputs.append(np.array(interpreter.get_output(0)))
    return outputs


def by_reference(data: bytes, steps: Sequence[Array]) -> list[Array]:
    """The outputs of the reference, run by run."""
    graph = graph_of(data)
    (x,) = graph.arguments
    (y,) = graph.results
    return [outputs[y.name] for outputs in execute_steps(graph, [{x.name: v} for v in steps])]


@pytest.mark.tools
@pytest.mark.parametrize("initial", [None, np.array([[3.0, -7.5]], np.float32)])
def test_sequences_equal_tflite_micro(initial: Array | None) -> None:
    """Each of 60 runs begins with what the one before has left."""
    data = running_sum(initial)
    for got, want in zip(by_reference(data, STEPS), by_tflm(data, STEPS), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.tools
@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", seeds(0, 6))
def test_random_sequences_equal_tflite_micro(kind: str, seed: int) -> None:
    """Rings, sums and delays of every type, read before and after they are assigned."""
    from tflite_micro import runtime

    data = random_model(seed, kind)
    graph, generator = graph_of(data), np.random.default_rng(seed)
    steps = [
        {t.name: values_of(generator, t.dtype.value, t.shape) for t in graph.arguments}
        for _ in range(56)
    ]
    interpreter = runtime.Interpreter.from_bytes(data, arena_size=1 << 16)
    for step, got in zip(steps, execute_steps(graph, steps), strict=True):
        for index, tensor in enumerate(graph.arguments):
            interpreter.set_input(step[tensor.name], index)
        interpreter.invoke()
        for index, tensor in enumerate(graph.results):
            np.testing.assert_array_equal(got[tensor.name], interpreter.get_output(index))


def test_a_state_is_an_input_and_an_output_of_the_graph() -> None:
    """Callers give and take neither of them."""
    graph = graph_of(running_sum(np.array([[3.0, -7.5]], np.float32)))
    (state,) = graph.states
    assert state.name == "sum"
    assert state.initial.tolist() == [[3.0, -7.5]]
    assert [t.name for t in graph.arguments] == ["x"]
    assert [t.name for t in graph.results] == ["out"]
    assert state.before in graph.inputs
    assert state.after in graph.outputs


def test_a_resource_that_nothing_assigns_is_a_constant() -> None:
    """What was read of it has the initial value for good."""
    builder = TfliteBuilder()
    x, old, out = (builder.tensor(name, (1, 2), np.float32) for name in ("x", "old", "out"))
    initialised(builder, np.array([[3.0, -7.5]], np.float32))
    builder.operator(Code.READ_VARIABLE, [handle(builder)], [old])
    builder.operator(Code.ADD, [old, x], [out], AddOptions())
    graph = graph_of(builder.build([x], [out]))
    assert not graph.states
    assert graph.nodes[0].inputs[0].is_constant


def test_states_that_no_result_depends_on_go() -> None:
    """A counter that nobody reads is no state of the program."""
    builder = TfliteBuilder()
    x, old, new, out = (builder.tensor(n, (1, 2), np.float32) for n in ("x", "old", "new", "out"))
    variable = handle(builder)
    builder.operator(Code.READ_VARIABLE, [variable], [old])
    builder.operator(Code.ADD, [old, x], [new], AddOptions())
    builder.operator(Code.ASSIGN_VARIABLE, [variable, new], [])
    builder.operator(Code.ADD, [x, x], [out], AddOptions())
    graph = graph_of(builder.build([x], [out]))
    assert len(graph.states) == 1
    after = RemoveDeadNodes()(graph)
    verify(after)
    assert not after.states
    assert [node.op.name for node in after.nodes] == ["add"]


def test_int8_resources_begin_at_their_zero_point() -> None:
    """Nothing was assigned yet: tflite-micro fills the bytes with the zero point."""
    builder = TfliteBuilder()
    quant: dict[str, Any] = {"scales": [0.5], "zero_points": [-7]}
    x, old, new = (builder.tensor(n, (1, 2), np.int8, **quant) for n in ("x", "old", "new"))
    variable = handle(builder)
    builder.operator(Code.READ_VARIABLE, [variable], [old])
    builder.operator(Code.ADD, [old, x], [new], AddOptions())
    builder.operator(Code.ASSIGN_VARIABLE, [variable, new], [])
    graph = graph_of(builder.build([x], [new]))
    assert graph.states[0].initial.tolist() == [[-7, -7]]


def test_types_of_a_variable_agree() -> None:
    """What is assigned has the type of what is read."""
    builder = TfliteBuilder()
    x = builder.tensor("x", (1, 3), np.float32)
    old, out = (builder.tensor(name, (1, 2), np.float32) for name in ("old", "out"))
    variable = handle(builder)
    builder.operator(Code.READ_VARIABLE, [variable], [old])
    builder.operator(Code.ADD, [old, old], [out], AddOptions())
    builder.operator(Code.ASSIGN_VARIABLE, [variable, x], [])
    text = refusal(builder.build([x], [out]))
    assert "the variable 'sum' has the type float32 (1, 3) here" in text
    assert "expected: float32 (1, 2), as in" in text


def test_scales_of_a_variable_agree() -> None:
    """Both are named with their zero points, which may be all that differs."""
    builder = TfliteBuilder()
    old, out, x = (
        builder.tensor(name, (1, 2), np.int8, None, [0.5], [zero_point])
        for name, zero_point in (("old", -7), ("out", -7), ("x", 3))
    )
    variable = handle(builder)
    builder.operator(Code.READ_VARIABLE, [variable], [old])
    builder.operator(Code.ADD, [old, old], [out], AddOptions())
    builder.operator(Code.ASSIGN_VARIABLE, [variable, x], [])
    text = refusal(builder.build([x], [out]))
    assert "has the type int8 (1, 2) of scale 0.5 and zero point 3 here" in text
    assert "expected: int8 (1, 2) of scale 0.5 and zero point -7, as in" in text


def test_initial_values_are_known_at_compile_time() -> None:
    """CALL_ONCE names a subgraph of the file, and not its own."""
    for number in (0, 7):
        builder = TfliteBuilder()
        x, out = (builder.tensor(name, (1, 2), np.float32) for name in ("x", "out"))
        builder.operator(Code.CALL_ONCE, [], [], CallOnceOptions(number))
        builder.operator(Code.ADD, [x, x], [out], AddOptions())
        assert f"it calls subgraph {number}" in str(check(builder.build([x], [out]))[0])
