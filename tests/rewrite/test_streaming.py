"""Networks over a window of frames that are given the newest frames: equal to the whole window."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import host
from microtir.config import CompilationConfig, Optimize, PassConfig
from microtir.dtype import DType
from microtir.errors import ConfigError, LimitError
from microtir.graph.ir import Graph, Tensor
from microtir.graph.rewriting import substitute
from microtir.module.ir_module import IRModule
from microtir.operators.activations.definition import Relu
from microtir.operators.arithmetic.definition import Add
from microtir.operators.common.attributes import Activation, Padding2D
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.reduction.definition import Mean
from microtir.operators.softmax.definition import Softmax
from microtir.operators.state.definition import JoinRows, KeepRows
from microtir.rewrite.checked import rewritten
from microtir.rewrite.facts.macs import macs
from microtir.rewrite.optimise import GRAPH_PASSES
from microtir.rewrite.reference import execute_steps
from microtir.rewrite.requests.streaming import push_graph
from microtir.rewrite.verify import verify
from microtir.tir.memory_plan import KeptBlock, StateLayout
from tests.support.graphs import constant, graph, node, tensor
from tests.support.networks_over_time import frames_of, named_network, on_windows, random_network
from tests.support.seeds import is_soak, seeds
from tests.support.small_models import module_of
from tests.support.stateful import running_sum

DTYPES = pytest.mark.parametrize("dtype", [DType.INT8, DType.FLOAT32], ids=lambda t: t.value)


def pushes(whole: Graph, axis: int, hop: int) -> Graph:
    """The graph of a push, verified."""
    legal = rewritten(whole, GRAPH_PASSES, PassConfig())
    made = push_graph(legal, legal.arguments[0], axis, hop)
    verify(made)
    return made


@DTYPES
@pytest.mark.soak
def test_pushes_equal_the_window_in_every_phase(dtype: DType) -> None:
    """Random networks by hops of one to three frames, each phase four times and more."""
    phases: set[int] = set()
    for seed in seeds(0, 20):
        whole, axis = random_network(seed, dtype)
        for hop in (1, 2, 3):
            made = pushes(whole, axis, hop)
            turns = max((state.turns for state in made.states), default=1)
            phases.add(turns)
            frames = frames_of(whole.arguments[0], axis, hop * max(4 * turns, 10))
            pairs = list(on_windows(whole, axis, hop, frames))
            given = [{whole.arguments[0].name: values} for values, _ in pairs]
            for got, (_, expected) in zip(execute_steps(made, given), pairs, strict=True):
                assert {n: a.tobytes() for n, a in got.items()} == {
                    n: a.tobytes() for n, a in expected.items()
                }
    assert is_soak() or {1, 2, 4} <= phases


@pytest.mark.parametrize("goal", list(Optimize), ids=str)
def test_random_pushes_compile(goal: Optimize) -> None:
    """Every pass is replayed, every placement proven, and no row is joined by a copy."""
    options = {"tir.replay_each_pass": True}
    config = CompilationConfig(targets="c -mcpu=cortex-m4", optimize=goal, pass_config=options)
    for seed in range(5):
        made, _ = compiled(seed, DType.INT8, config)
        assert made.program is not None
        kernels = [(op.node.op, op.candidate.kernel) for op in made.program.plan.operators]
        assert {kernel for op, kernel in kernels if isinstance(op, JoinRows)} <= {"view"}
        assert any(isinstance(op, KeepRows) for op, _ in kernels)


def compiled(
    seed: int, dtype: DType, config: CompilationConfig, turns: int = 1
) -> tuple[IRModule, Graph]:
    """The first network from a seed on that is streamed in so many phases, lowered, and it."""
    for number in range(100 * seed, 100 * seed + 100):
        whole, axis = random_network(number, dtype)
        states = pushes(whole, axis, 1).states
        if states and max(state.turns for state in states) == turns:
            asked = config.with_(stream_axis=str(axis))
            return microtir.lower(module_of(whole).with_configuration(asked)), whole
    raise AssertionError("there is none")


@pytest.mark.tools
@DTYPES
@pytest.mark.parametrize("turns", [1, 2, 4])
def test_c_equals_the_window(dtype: DType, turns: int) -> None:
    """Pushes on this machine, phase by phase."""
    lowered, whole = compiled(turns, dtype, CompilationConfig(targets=HOST), turns)
    assert lowered.graph is not None
    stream = lowered.graph.stream
    assert stream is not None
    model = host.load(microtir.build(lowered))
    frames = frames_of(whole.arguments[0], stream.axis, 12)
    for given, expected in on_windows(whole, stream.axis, 1, frames):
        got = model.run({stream.input.name: given})
        for name, value in expected.items():
            if dtype is DType.INT8:
                np.testing.assert_array_equal(got[name], value)
            else:
                np.testing.assert_allclose(got[name], value, 1e-4, 1e-5)


HOST = str(microtir.config.host().primary_target())


@pytest.mark.tools
def test_the_header_has_both_names() -> None:
    """A push is a run; what it is given is said in frames."""
    whole, axis = random_network(1, DType.INT8)
    config = CompilationConfig(targets="c", stream_axis=str(axis), module_name="kws")
    artifact = microtir.build(module_of(whole), config)
    header = next(s.text for s in artifact.sources if s.path == "kws.h")
    assert "int32_t kws_push(" in header
    assert f"on a window of {whole.arguments[0].shape[axis]} frames" in header
    model = host.load(artifact)
    assert model.inputs[0].shape[axis] == 1


def test_a_budget_counts_every_turn() -> None:
    """The limit of RAM is one of the workspace and of all values of each state, and the counter."""
    config = CompilationConfig(targets="c", optimize="ram-least", stream_axis="1")
    module = module_of(named_network("strided", DType.INT8))
    artifact = microtir.build(module, config)
    facts, memory = artifact.metadata.state, artifact.metadata.memory
    assert facts is not None and memory is not None
    taken = facts.size + sum(pool.size for pool in memory.pools)
    microtir.build(module, config.with_(budget={"ram": taken}))
    with pytest.raises(LimitError, match=f"the workspace and the state take {taken} bytes, 1 more"):
        microtir.build(module, config.with_(budget={"ram": taken - 1}))


def test_values_in_turn_are_aligned_each() -> None:
    """Whoever reads words finds them in every phase."""
    odd = KeptBlock(alignment=4, size=27, turns=3)
    assert odd.stride == 28
    assert StateLayout.of_blocks([odd]).offsets == (4, 88)  # behind the identity; then the counter
    assert KeptBlock(alignment=4, size=27).stride == 27


def layered(*, rows: int = 16, head: str = "mean") -> Graph:
    """Two convolutions of three frames, padded at both ends, and a head."""
    generator = np.random.default_rng(5)
    x, a, b = (tensor(name, (1, rows, 1, 2)) for name in ("x", "a", "b"))
    weights = [
        constant(f"w{n}", generator.normal(size=(2, 3, 1, 2)).astype(np.float32)) for n in "ab"
    ]
    op = Conv2D(padding=Padding2D(top=1, bottom=1))
    nodes = [node(op, (x, weights[0]), a), node(op, (a, weights[1]), b)]
    shape = (1, 2) if head == "mean" else (1, rows, 1, 2)
    y = tensor("y", shape)
    nodes.append(node(Mean((1, 2)) if head == "mean" else Relu(Activation.RELU), (b,), y))
    return graph(nodes, (x,), (y,))


def test_rows_near_padding_are_computed_anew() -> None:
    """One row more at either end with each layer that pads, and the newest."""
    stream = pushes(layered(), 1, 1).stream
    assert stream is not None
    assert [(layer.computed, layer.rows) for layer in stream.layers] == [(3, 16), (5, 16)]
    assert all(layer.is_padded for layer in stream.layers)
    assert [layer.macs_computed * 16 for layer in stream.layers] == [
        layer.macs * layer.computed for layer in stream.layers
    ]


def test_layers_that_share_their_first_names_have_states_of_their_own() -> None:
    """Converters join the names of what they fuse, and the first is often that of another layer."""
    whole = layered()
    a, b = (node.output for node in whole.nodes[:2])
    first, second = replace(a, name="conv;first"), replace(b, name="conv;second")
    new = {a: first, b: second}
    named = replace(whole, nodes=tuple(substitute(node, new) for node in whole.nodes))
    states = pushes(named, 1, 1).states
    assert len({state.name for state in states}) == len(states) == 3


def test_a_sequence_of_results_is_whole() -> None:
    """Where all rows are a result, those that stay are copied to the caller."""
    whole = layered(head="rows")
    made = pushes(whole, 1, 1)
    assert made.results[0].shape == (1, 16, 1, 2)
    assert sum(map(macs, made.nodes)) < sum(map(macs, whole.nodes))


@pytest.mark.model("kws_int8")
def test_the_floor_of_kws(models_dir: Path) -> None:
    """Padding in time makes a push compute 0.42 of the window; each phase has rings of its own."""
    module = microtir.frontend.from_tflite(models_dir / "kws_int8.tflite")
    assert module.graph is not None
    for hop, turns in ((1, 2), (2, 1)):
        made = pushes(module.graph, 1, hop)
        assert made.stream is not None
        work = sum(layer.macs for layer in made.stream.layers)
        computed = sum(layer.macs_computed for layer in made.stream.layers)
        assert computed == sum(map(macs, made.nodes))
        assert 0.41 < computed / work < 0.42
        assert max(state.turns for state in made.states) == turns


def refused(whole: Graph, **options: object) -> str:
    """What is said against streaming a graph."""
    module = module_of(whole).with_configuration(CompilationConfig(targets="c").with_(**options))
    with pytest.raises(ConfigError) as error:
        microtir.lower(module)
    return str(error.value)


def test_axes_without_frames_are_refused() -> None:
    """Frames lie one after the other, and a push is given fewer than a window."""
    whole = layered()
    assert "axis 0 of 'x'" in refused(whole, stream_axis="0")
    assert "expected: 1" in refused(whole, stream_axis="3")
    assert "axis 7" in refused(whole, stream_axis="7")
    with pytest.raises(ConfigError, match="cannot be combined with 'stateful'"):
        CompilationConfig(targets="c", stateful=True, stream_axis="1")
    assert "expected: 1 to 15" in refused(whole, stream_axis="1", stream_hop=16)
    assert "no input is called 'z'" in refused(whole, stream_axis="z=1")


def test_models_that_cannot_be_streamed_are_refused() -> None:
    """Those that keep something, and those of which nothing stays."""
    kept = microtir.frontend.from_tflite(running_sum()).graph
    assert kept is not None
    assert "the model has a state" in refused(kept, stream_axis="1")
    x, y = (tensor(name, (1, 8)) for name in "xy")
    once = graph([node(Softmax(1.0), (x,), y)], (x,), (y,))
    assert "frames" in refused(once, stream_axis="0")


def test_of_several_inputs_one_is_named() -> None:
    """The others are given whole with every push, and what they meet is computed anew."""
    whole = layered()
    other, y = tensor("other", (1, 2)), tensor("sum", (1, 2))
    both = replace(
        whole,
        inputs=(*whole.inputs, other),
        nodes=(*whole.nodes, node(Add(), (whole.outputs[0], other), y)),
        outputs=(y,),
    )
    assert "expected: x=1, other=1" in refused(both, stream_axis="1")
    assert "no input is called" in refused(both, stream_axis="outer=1")
    made = push_graph(both, _input(both, "x"), 1, 1)
    verify(made)
    frames, given = frames_of(whole.arguments[0], 1, 9), np.array([[2.0, -1.0]], np.float32)
    steps = [{"x": frame, "other": given} for frame in frames]
    windows = on_windows(whole, 1, 1, frames)
    for got, (_, expected) in zip(execute_steps(made, steps), windows, strict=True):
        np.testing.assert_array_equal(got["sum"], expected["y"] + given)


def _input(whole: Graph, name: str) -> Tensor:
    return next(t for t in whole.arguments if t.name == name)
