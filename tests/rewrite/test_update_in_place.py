"""New values of states that are computed where they stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import microtir
from microtir.config import CompilationConfig
from microtir.dtype import DType
from microtir.frontend import from_tflite
from microtir.graph.ir import Array, Graph, Node, State, Tensor
from microtir.graph.operator import Operator
from microtir.operators.activations.definition import LeakyRelu, Relu
from microtir.operators.arithmetic.definition import Add, Mul, Sub
from microtir.operators.movement.definition import Reshape
from microtir.operators.softmax.definition import Softmax
from microtir.operators.state.definition import Assign
from microtir.rewrite.optimise import OrderAssigns, UpdateInPlace
from microtir.rewrite.reference import execute_steps
from microtir.rewrite.verify import verify
from tests.support.graphs import graph, node, quant, tensor
from tests.support.operator_cases import generate
from tests.support.small_models import module_of
from tests.support.stateful import KINDS, random_model

CONFIG = CompilationConfig(targets="c -mcpu=cortex-m4", pass_config={"tir.replay_each_pass": True})


def with_states(nodes: Sequence[Node], states: Sequence[State]) -> Graph:
    """A graph with states that is given x and gives y."""
    inputs = [t for n in nodes for t in n.inputs if t.name == "x"][:1]
    outputs = [t for n in nodes for t in n.outputs if t.name == "y"]
    starts, ends = ([getattr(s, side) for s in states] for side in ("before", "after"))
    made = graph(nodes, (*inputs, *starts), (*outputs, *ends))
    made = replace(made, states=tuple(states))
    verify(made)
    return made


def state(name: str, like: Tensor, after: str | None = None) -> State:
    """A state that begins as ones."""
    before, new = (Tensor(n, like.type) for n in (name, after or f"{name}_after"))
    return State(before, new, np.ones(like.shape, like.dtype.value))


def updated(op: Operator, dtype: DType = DType.FLOAT32, reads: str = "old") -> Graph:
    """A state whose new value is an operator of the old one; y is x and what `reads` says."""
    quantization = quant(0.05, -3) if dtype is DType.INT8 else None
    x, value, y = (tensor(n, (1, 6), dtype, quantization) for n in ("x", "value", "y"))
    kept = state("s", x)
    inputs = (kept.before, x) if isinstance(op, Add | Sub | Mul) else (kept.before,)
    others = {"old": (x, kept.before), "both": (value, kept.before), "x": (x, x)}
    nodes = [
        node(op, inputs, value),
        node(Add(), others[reads], y),
        node(Assign(), (value,), kept.after),
    ]
    return with_states(nodes, [kept])


def runs(model: Graph, count: int = 5) -> list[Array]:
    """The results of some runs."""
    generator = np.random.default_rng(1)
    (x,) = model.arguments
    (y,) = model.results
    steps = [
        {x.name: generator.integers(-9, 9, x.shape).astype(x.dtype.value)} for _ in range(count)
    ]
    return [outputs[y.name] for outputs in execute_steps(model, steps)]


def checked(model: Graph) -> Graph:
    """The graph after the pass: as before, and its placement is proven."""
    made = UpdateInPlace()(OrderAssigns()(model))
    verify(made)
    np.testing.assert_array_equal(runs(made), runs(model))
    lowered = microtir.lower(module_of(model).with_configuration(CONFIG))
    assert lowered.program is not None
    assert lowered.program.placement.verified
    return made


def copies(model: Graph) -> int:
    """How many nodes copy into states."""
    return sum(isinstance(n.op, Assign) for n in model.nodes)


@pytest.mark.parametrize(
    "op", [Add(), Mul(), Sub(), Relu(), LeakyRelu(0.5)], ids=lambda op: op.name
)
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.INT8], ids=lambda t: t.value)
def test_elementwise_operators_write_over_what_they_read(op: Operator, dtype: DType) -> None:
    """The old value, which the result depends on, is read before that."""
    made = checked(updated(op, dtype))
    assert copies(made) == 0
    assert [n.output.name for n in made.nodes] == ["y", "s_after"]


@pytest.mark.parametrize("operator", ["SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM"])
@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_recurrent_layers_change_what_they_keep(operator: str, dtype: str) -> None:
    """Each new value takes the place of the old one of its number."""
    assert copies(checked(generate(operator, 0, dtype).graph())) == 0


def test_a_layer_that_keeps_one_state_in_another_is_copied() -> None:
    """A new value lies where the old one of its number has lain, or in memory of its own."""
    model = generate("UNIDIRECTIONAL_SEQUENCE_LSTM", 0, "float32").graph()
    hidden, cell = model.states
    crossed = tuple(replace(s, after=t.after) for s, t in ((hidden, cell), (cell, hidden)))
    assert copies(checked(replace(model, states=crossed))) == 2


def test_operators_that_read_all_before_they_write_are_copied() -> None:
    """Each element of a softmax needs all of the old value."""
    assert copies(checked(updated(Softmax(1.0), reads="x"))) == 1


def test_old_values_that_are_needed_later_are_copied() -> None:
    """Who adds both values needs both memories."""
    assert copies(checked(updated(Add(), reads="both"))) == 1


def test_results_are_copied() -> None:
    """A result lies in memory of the caller's own."""
    x, y = tensor("x", (1, 6)), tensor("y", (1, 6))
    kept = state("s", x)
    nodes = [node(Add(), (kept.before, x), y), node(Assign(), (y,), kept.after)]
    assert copies(checked(with_states(nodes, [kept]))) == 1


def test_views_are_looked_through() -> None:
    """An operator that sees the old value in another shape writes over it, too."""
    x, flat, value, y = (tensor(n, s) for n, s in zip(
        ("x", "flat", "value", "y"), ((6, 1), (6, 1), (6, 1), (6, 1)), strict=True
    ))  # fmt: skip
    kept = state("s", tensor("like", (1, 6)))
    back = tensor("back", (1, 6))
    nodes = [
        node(Reshape(), (kept.before,), flat),
        node(Add(), (x, flat), value),
        node(Reshape(), (value,), back),
        node(Assign(), (back,), kept.after),
        node(Add(), (value, x), y),
    ]
    assert copies(checked(with_states(nodes, [kept]))) == 0


def test_states_that_need_each_other_keep_a_copy() -> None:
    """One of two new values has to wait until the other old value was read."""
    x, first, second, y = (tensor(n, (1, 6)) for n in ("x", "first", "second", "y"))
    one, two = state("one", x), state("two", x)
    nodes = [
        node(Add(), (one.before, two.before), first),
        node(Sub(), (one.before, two.before), second),
        node(Add(), (first, x), y),
        node(Assign(), (first,), one.after),
        node(Assign(), (second,), two.after),
    ]
    assert copies(checked(with_states(nodes, [one, two]))) == 1


@pytest.mark.parametrize("swaps", [False, True])
def test_values_that_go_from_state_to_state_are_read_in_time(swaps: bool) -> None:
    """The order of a delay line is found; states that swap their values need a third memory."""
    x, y = tensor("x", (1, 6)), tensor("y", (1, 6))
    one, two = state("one", x), state("two", x)
    nodes = [
        node(Assign(), (two.before if swaps else x,), one.after),
        node(Assign(), (one.before,), two.after),
        node(Add(), (x, two.before), y),
    ]
    made = checked(with_states(nodes, [one, two]))
    assert copies(made) == (3 if swaps else 2)


@pytest.mark.parametrize("kind", KINDS)
def test_random_states_keep_their_results(kind: str) -> None:
    """Every pass is replayed, and every placement proven."""
    for seed in range(4):
        module = from_tflite(random_model(seed, kind))
        lowered = microtir.lower(module.with_configuration(CONFIG))
        assert lowered.program is not None
        assert lowered.program.placement.verified
