"""Models of sequences that are computed one step a run, against the whole sequence in one call."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir.config import CompilationConfig
from microtir.errors import ConfigError
from microtir.frontend import from_tflite
from microtir.graph.ir import Array, Graph, Tensor
from microtir.graph.operator import Operator
from microtir.operators.activations.definition import Logistic, Tanh
from microtir.operators.arithmetic.definition import Add
from microtir.operators.control.definition import Repeat, has_control
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.movement.definition import Reshape, StridedSlice, Transpose
from microtir.operators.recurrent.definition import Lstm
from microtir.operators.softmax.definition import Softmax
from microtir.rewrite.optimise import FuseLstmLoops
from microtir.rewrite.reference import execute, execute_steps
from microtir.rewrite.requests.stepwise import OneStep
from microtir.rewrite.verify import verify
from scripts.models.recurrent import Kind, lstm, stacked_lstms
from tests.rewrite.test_fuse_lstm_loops import STEPS, Written, loop
from tests.support.batch import load_batch
from tests.support.graphs import constant, graph, node, tensor

LONG = 50


def values_of(x: Tensor, seed: int = 5) -> Array:
    """A random sequence."""
    rng = np.random.default_rng(seed)
    if x.dtype.is_float:
        return rng.standard_normal(x.shape).astype(np.float32)
    return rng.integers(x.dtype.min, x.dtype.max + 1, x.shape).astype(x.dtype.value)


def near(got: Array, wanted: Array) -> None:
    """The reference rounds states behind each run, which may be a step or all of them."""
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6)


def of(model: bytes) -> Graph:
    """The graph of a file."""
    made = from_tflite(model).graph
    assert made is not None
    return made


@pytest.mark.tools
@pytest.mark.parametrize(
    "kind",
    [Kind.FLOAT32, Kind.HYBRID, Kind.INT8, pytest.param(Kind.INT16, marks=pytest.mark.soak_only)],
)
def test_c_gives_the_same_bits_step_by_step(tmp_path: Path, kind: Kind) -> None:
    """50 steps in as many runs, and in one: one layer, and two of which the last step counts."""
    files = {"one": lstm(kind, LONG, 6, 8), "two": stacked_lstms(kind, LONG, 6, 8)}
    configs = {
        "whole": CompilationConfig(targets="c -mcpu=cortex-m4"),
        "steps": CompilationConfig(targets="c -mcpu=cortex-m4", stateful=True),
    }
    artifacts = [
        microtir.build(from_tflite(file), config.with_(module_name=f"{name}_{way}"))
        for name, file in files.items()
        for way, config in configs.items()
    ]
    models = load_batch(artifacts, tmp_path)
    x = values_of(of(files["one"]).arguments[0])
    for number, name in enumerate(files):
        whole, steps = models[2 * number : 2 * number + 2]
        (wanted,) = whole.run({"x": x}).values()
        runs = steps.run_sequence([{"x": x[:, [step]]} for step in range(LONG)])
        got = [outputs["y"] for outputs in runs]
        if name == "one":
            np.testing.assert_array_equal(np.concatenate(got, axis=1), wanted)
        else:
            np.testing.assert_array_equal(got[-1], wanted)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("first", [0.0, 0.5])
@pytest.mark.parametrize("show", [Logistic(), Tanh()])
def test_loops_keep_what_they_began_with(batch: int, first: float, show: Operator) -> None:
    """What each sequence began with is what the first run begins with.

    A loop with another gate is no LSTM, and its turn is what a run computes.
    """
    written = Written(batch=batch, first=first, results=("list", "cell"), show=show)
    model = FuseLstmLoops()(loop(written))
    assert has_control(model.nodes) is (show == Tanh())
    steps = OneStep()(model)
    verify(steps)
    assert not any(isinstance(node.op, Repeat) for node in steps.nodes)
    assert sorted(state.initial.flat[0] for state in steps.states) == [0.0, first]
    x = values_of(model.arguments[0])
    wanted = execute(model, {"x": x})
    runs = list(execute_steps(steps, [{"x": x[[step]]} for step in range(STEPS)]))
    shown = np.concatenate([outputs["y_list"] for outputs in runs])
    near(shown, wanted["y_list"])
    near(runs[-1]["y_cell"], wanted["y_cell"])


EXPORTED_LOOPS = [
    pytest.param(name, marks=pytest.mark.model(f"exported/{name}"))
    for name in ("gru_while_float32", "gru_while_reset_before_float32", "lstm_while_hybrid")
]


@pytest.mark.tools
@pytest.mark.parametrize("name", EXPORTED_LOOPS)
def test_loops_of_exporters_give_the_same_bits_step_by_step(models_dir: Path, name: str) -> None:
    """Cells of any kind, of which the last step counts, with hybrid layers in the turns, too."""
    # With one goal for speed both have the same kernels, which add floats in the same order.
    config = CompilationConfig(targets="c -mcpu=cortex-m4", numerics="tflite_ref", optimize="speed")
    module = from_tflite(models_dir / "exported" / f"{name}.tflite")
    whole, steps = (
        microtir.host.load(microtir.build(module, config.with_(stateful=one)))
        for one in (False, True)
    )
    (x,) = of((models_dir / "exported" / f"{name}.tflite").read_bytes()).arguments
    values = values_of(x)
    (wanted,) = whole.run({x.name: values}).values()
    given = [{x.name: values[:, [step]]} for step in range(x.shape[1])]
    (got,) = steps.run_sequence(given)[-1].values()
    np.testing.assert_array_equal(got, wanted)


def network(*layers: tuple[Operator, tuple[int, ...]], behind: bool = True) -> Graph:
    """An LSTM of 4 units over 5 steps with 3 inputs; layers behind it, or in front of it."""
    rng = np.random.default_rng(1)
    last, nodes = tensor("x", (1, 5, 3)), []
    x = last
    weights = [
        constant(f"c{n}", rng.standard_normal(shape).astype(np.float32))
        for n, shape in enumerate(((4, 3),) * 4 + ((4, 4),) * 4 + ((4,),) * 4)
    ]
    none = [constant(f"none{n}", np.zeros((1, 4), np.float32)) for n in range(2)]
    layer: list[tuple[Operator, tuple[int, ...]]] = [(Lstm(), (1, 5, 4))]
    pieces = [*layer, *layers] if behind else [*layers, *layer]
    for number, (op, shape) in enumerate(pieces):
        output = tensor(f"t{number}", shape)
        inputs: list[Tensor] = [last]
        outputs = [output]
        if isinstance(op, Lstm):
            inputs += [*none, *weights]
            outputs += [tensor("hidden", (1, 4)), tensor("cell", (1, 4))]
        elif isinstance(op, FullyConnected):
            rows = shape[-1], int(np.prod(last.shape)) // int(np.prod(shape[:-1]))
            inputs.append(constant(f"w{number}", rng.standard_normal(rows).astype(np.float32)))
        elif isinstance(op, Add):
            extents = last.shape if op.activation.value == "relu" else (last.shape[-1],)
            inputs.append(constant(f"a{number}", rng.standard_normal(extents).astype(np.float32)))
        nodes.append(node(op, inputs, outputs))
        last = output
    made = graph(nodes, [x], [last])
    verify(made)
    return made


FOLLOWED: dict[str, list[tuple[Operator, tuple[int, ...]]]] = {
    "each step by itself": [(FullyConnected(), (1, 5, 2)), (Tanh(), (1, 5, 2)),
                            (Softmax(), (1, 5, 2))],
    "rows": [(Reshape(), (5, 4)), (FullyConnected(), (5, 2)), (Reshape(), (1, 5, 2))],
    "a constant of all steps": [(Add(), (1, 5, 4))],
    "another order of axes": [(Transpose((1, 0, 2)), (5, 1, 4)), (Reshape(), (1, 5, 4))],
    "some of the units": [(StridedSlice((0, 0, 1), (1, 1, 2), (1, 5, 2)), (1, 5, 2))],
    "the last step": [(StridedSlice((0, 4, 0), (1, 1, 1), (1, 1, 4)), (1, 4)),
                      (FullyConnected(), (1, 2))],
}  # fmt: skip


@pytest.mark.parametrize("case", FOLLOWED)
def test_layers_around_are_those_of_a_step(case: str) -> None:
    """Each run gives what the whole model gives for its step."""
    model = network(*FOLLOWED[case])
    steps = OneStep()(model)
    verify(steps)
    x, result = values_of(model.arguments[0]), model.results[0]
    wanted = execute(model, {"x": x})[result.name]
    runs = execute_steps(steps, [{"x": x[:, [step]]} for step in range(5)])
    got = [outputs[result.name] for outputs in runs]
    if case == "the last step":
        near(got[-1], wanted)
    else:
        near(np.concatenate(got, axis=wanted.shape.index(5)), wanted)


def of_two_lengths() -> Graph:
    """Two LSTMs over sequences of different lengths."""
    one = network()
    other = from_tflite(lstm(Kind.FLOAT32, 7, 3, 4)).graph
    assert other is not None
    return Graph(
        "two", (*one.inputs, *other.inputs), (*one.outputs, *other.outputs),
        (*one.nodes, *other.nodes), states=other.states,
    )  # fmt: skip


REVERSED = (StridedSlice((0, 4, 0), (1, -1, 1), (1, 5, 3)), (1, 5, 3))
REFUSED = {
    "like one direction of a bidirectional layer": lambda: network(REVERSED, behind=False),
    "needs several steps at once": lambda: network((Reshape(), (1, 20)), (Tanh(), (1, 20))),
    "has no recurrent layer and no loop over a sequence": lambda: graph(
        [node(Tanh(), [tensor("x", (1, 5, 3))], tensor("y", (1, 5, 3)))],
        [tensor("x", (1, 5, 3))], [tensor("y", (1, 5, 3))],
    ),
    "have 5 and 7 steps": of_two_lengths,
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_needs_more_than_the_past_is_refused(text: str) -> None:
    """Each with the layer and what is legal."""
    with pytest.raises(ConfigError, match=text) as caught:
        OneStep()(REFUSED[text]())
    assert "expected: " in str(caught.value)


def test_a_sequence_of_one_step_is_refused() -> None:
    """It is computed so already."""
    with pytest.raises(ConfigError, match="have 1 steps"):
        OneStep()(of(lstm(Kind.FLOAT32, 1, 3, 4)))


def test_ports_and_states_are_those_of_a_step() -> None:
    """The header speaks of one step; the model keeps what its layers keep."""
    config = CompilationConfig(targets="c", stateful=True)
    module = microtir.lower(from_tflite(lstm(Kind.INT8, LONG, 6, 8)).with_configuration(config))
    assert module.model is not None
    assert [port.type.shape for port in module.model.ports] == [(1, 1, 6), (1, 1, 8)]
    assert [state.name for state in module.model.states] == ["hidden", "cell"]
