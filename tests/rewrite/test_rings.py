"""Rings of frames in streaming models: rows move within the state, and are read where they lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import microtir
from microtir.config import CompilationConfig, Optimize, PassConfig
from microtir.frontend import from_tflite
from microtir.graph.ir import Graph, State
from microtir.operators.movement.definition import Concatenation, StridedSlice
from microtir.operators.state.definition import Assign, JoinRows, KeepRows
from microtir.rewrite.checked import rewritten
from microtir.rewrite.optimise import GRAPH_PASSES, PlaceRows, PushRows
from microtir.rewrite.reference import execute_steps
from microtir.rewrite.verify import verify
from scripts.models.wake_word import Order, Shape, wake_word
from tests.support.graphs import graph, node, tensor

Array = npt.NDArray[Any]

SMALL = Shape(3, 8, (5, 8), (((5,), 8), ((2, 3), 12)), 4)
ORDERS = pytest.mark.parametrize("order", Order)


def model_graph(order: Order) -> Graph:
    """The graph of a small model, as it is read."""
    found = from_tflite(wake_word(order, SMALL)).graph
    assert found is not None
    return found


def frames(shape: Sequence[int], runs: int = 60) -> list[Array]:
    """Random frames for so many runs."""
    generator = np.random.default_rng(3)
    return [generator.integers(-128, 128, shape).astype(np.int8) for _ in range(runs)]


def results(model: Graph, given: Sequence[Array]) -> list[Array]:
    """The result of each run."""
    (x,), (y,) = model.arguments, model.results
    return [outputs[y.name] for outputs in execute_steps(model, [{x.name: v} for v in given])]


@pytest.mark.tools
@ORDERS
def test_rings_equal_tflite_micro(order: Order) -> None:
    """60 runs from the first values on, after all passes."""
    from tflite_micro import runtime

    data = wake_word(order, SMALL)
    made = rewritten(model_graph(order), GRAPH_PASSES, PassConfig({"tir.replay_each_pass": True}))
    interpreter = runtime.Interpreter.from_bytes(data, arena_size=1 << 16)
    given = frames(made.arguments[0].shape)
    for values, got in zip(given, results(made, given), strict=True):
        interpreter.set_input(values, 0)
        interpreter.invoke()
        np.testing.assert_array_equal(got, interpreter.get_output(0))


@ORDERS
def test_new_rows_are_all_that_is_copied(order: Order) -> None:
    """No ring is joined or cut in the workspace; the rows of an input are the caller's."""
    made = rewritten(model_graph(order), GRAPH_PASSES, PassConfig())
    along_time = [
        n
        for n in made.nodes
        if (isinstance(n.op, Concatenation) and n.op.axis == 1)
        or (isinstance(n.op, StridedSlice) and n.output in {s.after for s in made.states})
    ]
    assert not along_time
    assert len([n for n in made.nodes if isinstance(n.op, KeepRows)]) == len(made.states) == 4
    (copied,) = [n for n in made.nodes if isinstance(n.op, Assign)]
    assert copied.inputs[0].shape == (1, 3, 1, 8)


@ORDERS
@pytest.mark.parametrize("goal", [Optimize.SPEED, Optimize.RAM_LEAST])
def test_rings_take_no_workspace(order: Order, goal: Optimize) -> None:
    """The checker has proven that rows are read before others take their places."""
    module = from_tflite(wake_word(order, SMALL))
    config = CompilationConfig(targets="c -mcpu=cortex-m4", optimize=goal)
    lowered = microtir.lower(module.with_configuration(config))
    assert lowered.program is not None
    assert lowered.program.placement.verified
    whole = {state.type.bytes for state in lowered.program.graph.states}
    placed = lowered.program.placement.placements
    assert max(p.size for p in placed if not p.name.endswith("scratch")) < max(whole)


def ring(*, axis: int = 1, first: int = 2, is_read: bool = False) -> Graph:
    """A ring of four rows, to which two are appended."""
    shapes = [
        tuple(n if a == axis else 2 - (a < 1 and axis == 1) for a in range(3)) for n in (4, 2, 6)
    ]
    before, x, joined = (tensor(n, s) for n, s in zip(("s", "x", "joined"), shapes, strict=True))
    dropped, after = tensor("dropped", shapes[0]), tensor("after", shapes[0])
    y = tensor("y", shapes[2])
    begin = tuple(first if a == axis else 0 for a in range(3))
    nodes = [
        node(Concatenation(axis), (before, x), joined),
        node(StridedSlice(begin, (1, 1, 1), shapes[0]), (joined,), dropped),
        node(Concatenation(axis), (dropped if is_read else before, x), y),
        node(Assign(), (dropped,), after),
    ]
    states = (State(before, after, np.zeros(shapes[0], np.float32)),)
    made = graph(nodes, (x, before), (y, after))
    made = Graph(made.name, made.inputs, made.outputs, made.nodes, states=states)
    verify(made)
    return made


def test_what_else_reads_the_ring_keeps_it_as_it_is() -> None:
    """The old rows are read when they would have moved."""
    made = ring()
    assert PushRows()(made) is made


def test_rows_that_do_not_follow_each_other_stay() -> None:
    """A run of memory moves; rows along an inner axis are none."""
    made = ring(axis=2, is_read=True)
    assert PushRows()(made) is made


def test_a_slice_may_have_other_readers() -> None:
    """What stays for the next run is then taken from the state's new value."""
    made = PlaceRows()(PushRows()(ring(axis=0, is_read=True)))
    verify(made)
    assert [type(n.op) for n in made.nodes][:3] == [KeepRows, Assign, JoinRows]
    given = [np.full((2, 2, 2), v, np.float32) for v in range(5)]
    first, second = (results(g, given) for g in (ring(axis=0, is_read=True), made))
    np.testing.assert_array_equal(first, second)
