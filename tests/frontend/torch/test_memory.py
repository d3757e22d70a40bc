"""Writes in place change what shares the memory, as views of numpy's arrays do."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
import pytest

from microtir.errors import MicrotirError
from microtir.frontend import check, from_torch
from microtir.graph.ir import Array, Graph
from microtir.rewrite import reference
from tests.support.torch_programs import TorchProgram

X = np.linspace(-3, 3, 20, dtype=np.float32).reshape(4, 5)


def read(program: TorchProgram) -> Graph:
    """Return the graph of a program."""
    graph = from_torch(program.archive()).graph
    assert graph is not None
    return graph


def run(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return outputs by name, and the new values of states by the names of the states."""
    before = {state.before.name: state.initial for state in graph.states}
    results = reference.execute(graph, {**inputs, **before})
    names = {state.after.name: state.name for state in graph.states}
    return {names.get(name, name): array for name, array in results.items()}


class Writes:
    """A program of views and writes, with the same done in numpy."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        buffer = np.arange(20, dtype=np.float32).reshape(4, 5) - 10
        self.program = TorchProgram({"x": ((4, 5), "float32")}, {"r": buffer})
        self.values: dict[str, Array] = {"b_r": buffer.copy(), "x": X.copy()}
        self.owned = {"b_r"}  # names whose memory may be written to

    def step(self) -> None:
        """Take a view, write in place, or compute something new."""
        name = self.random.choice(sorted(self.owned))
        kind = self.random.choice(("view", "view", "copy", "relu", "clamp", "new"))
        getattr(self, kind)(name, f"v{len(self.program.nodes)}")

    def view(self, name: str, result: str) -> None:
        axis = self.random.randrange(2)
        size = self.values[name].shape[axis]
        start = self.random.randrange(size)
        end, step = self.random.randrange(start + 1, size + 1), self.random.choice((1, 1, 2))
        cut = [slice(None)] * 2
        cut[axis] = slice(start, end, step)
        value = self.values[name][tuple(cut)]
        self.add(
            "aten.slice.Tensor", result, value, self=name, dim=axis, start=start, end=end, step=step
        )

    def copy(self, name: str, result: str) -> None:
        shape = self.values[name].shape
        sources = [n for n, value in self.values.items() if value.shape == shape and n != name]
        if sources:
            source = self.random.choice(sources)
            self.values[name][...] = self.values[source].copy()
            self.add("aten.copy_.default", result, self.values[name], self=name, src=source)

    def relu(self, name: str, result: str) -> None:
        np.maximum(self.values[name], 0, out=self.values[name])
        self.add("aten.relu_.default", result, self.values[name], self=name)

    def clamp(self, name: str, result: str) -> None:
        np.clip(self.values[name], -2, 5, out=self.values[name])
        bounds = {"min": -2.0, "max": 5.0}
        self.add("aten.clamp_.default", result, self.values[name], self=name, **bounds)

    def new(self, name: str, result: str) -> None:
        value = np.clip(self.values[name], 1, 4)
        self.add("aten.clamp.default", result, value, self=name, min=1.0, max=4.0)

    def add(self, target: str, result: str, value: Array, /, **arguments: object) -> None:
        self.program.add(target, result, value.shape, **arguments)
        self.values[result] = value
        self.owned.add(result)


@pytest.mark.parametrize("seed", range(40))
def test_random_writes(seed: int) -> None:
    """Every name and the buffer hold in the end what numpy's views hold."""
    writes = Writes(seed)
    for _ in range(12):
        writes.step()
    names = [name for name in writes.values if name.startswith("v")]
    writes.program.outputs = names
    results = run(read(writes.program), {"x": X})
    for place, name in enumerate(names):
        assert np.array_equal(results[f"output_{place}"], writes.values[name]), name
    if "r" in results:
        assert np.array_equal(results["r"], writes.values["b_r"])


def test_a_buffer_that_is_written_to_is_a_state() -> None:
    """It begins with what the file holds, and a run goes on with what the last one left."""
    program = TorchProgram({"x": ((1, 1), "float32")}, {"ring": np.zeros((1, 3), np.float32)})
    program.add("aten.slice.Tensor", "old", (1, 2), self="b_ring", dim=1, start=1, end=1 << 62)
    program.add("aten.clamp.default", "moved", (1, 2), self="old", min=-100.0)
    program.add("aten.slice.Tensor", "front", (1, 2), self="b_ring", dim=1, start=0, end=2)
    program.add("aten.copy_.default", "c0", (1, 2), self="front", src="moved")
    program.add("aten.slice.Tensor", "last", (1, 1), self="b_ring", dim=1, start=2, end=3)
    program.add("aten.copy_.default", "c1", (1, 1), self="last", src="x")
    program.outputs = [program.add("aten.relu.default", "y", (1, 3), self="b_ring")]
    graph = read(program)
    (state,) = graph.states
    ring = state.initial
    for value in (1.0, 2.0, 3.0, 4.0):
        given = {"x": np.array([[value]], np.float32), state.name: ring}
        results = reference.execute(graph, given)
        ring = results[state.after.name]
        assert np.array_equal(results["output_0"], ring)
    assert ring.tolist() == [[2, 3, 4]]


def test_a_mutation_of_the_signature_is_a_state() -> None:
    """As `run_decompositions` leaves them: the new value is an output of the graph."""
    program = TorchProgram({"x": ((2,), "float32")}, {"kept": np.ones(2, np.float32)})
    program.mutations = {"kept": program.add("aten.clamp.default", "y", (2,), self="x", min=0.5)}
    program.outputs = [program.add("aten.relu.default", "z", (2,), self="b_kept")]
    results = run(read(program), {"x": np.array([0, 2], np.float32)})
    assert results["output_0"].tolist() == [1, 1]
    assert results["kept"].tolist() == [0.5, 2]


def refused(program: TorchProgram) -> MicrotirError:
    """Return the first problem of a program."""
    problem, *_ = check(program.archive())
    return problem


def test_inputs_are_not_written_to() -> None:
    """The memory is the caller's."""
    program = TorchProgram({"x": ((2, 2), "float32")})
    program.add("aten.slice.Tensor", "part", (1, 2), self="x", dim=0, start=0, end=1)
    program.outputs = [program.add("aten.relu_.default", "y", (1, 2), self="part")]
    assert refused(program).what == "the program writes in place to 'x', an input"


def test_memory_that_strides_decide_about_is_refused() -> None:
    """Flattened columns may be a view: nobody knows what a write to them changes."""
    program = TorchProgram({"x": ((2, 2), "float32")})
    program.add("aten.clamp.default", "a", (2, 2), self="x", min=0.0)
    program.values["a"]["strides"].reverse()
    program.add("aten.flatten.using_ints", "flat", (4,), self="a")
    program.add("aten.relu_.default", "b", (4,), self="flat")
    program.outputs = [program.add("aten.relu.default", "c", (2, 2), self="a")]
    assert refused(program).what == "'a' may share memory with a tensor that was changed in place"
    program.nodes.pop()
    program.outputs = ["b"]
    assert not check(program.archive())


def test_flattened_rows_are_a_view() -> None:
    """Strides say that both are one memory."""
    program = TorchProgram({"x": ((2, 2), "float32")})
    program.add("aten.clamp.default", "a", (2, 2), self="x", min=-9.0)
    program.add("aten.flatten.using_ints", "flat", (4,), self="a")
    program.add("aten.relu_.default", "b", (4,), self="flat")
    program.outputs = [program.add("aten.clamp.default", "c", (2, 2), self="a", max=9.0)]
    x = np.array([[-1, 2], [3, -4]], np.float32)
    assert run(read(program), {"x": x})["output_0"].tolist() == [[0, 2], [3, 0]]


def test_writes_that_no_output_depends_on_are_read() -> None:
    """A counter is kept although nothing shows it."""
    program = TorchProgram({"x": ((2,), "float32")}, {"kept": np.ones(2, np.float32)})
    program.add("aten.copy_.default", "c", (2,), self="b_kept", src="x")
    program.outputs = [program.add("aten.relu.default", "y", (2,), self="x")]
    results = run(read(program), {"x": np.array([-1, 2], np.float32)})
    assert results["kept"].tolist() == [-1, 2]


def test_a_write_of_another_shape_is_refused() -> None:
    """It would be an error in PyTorch, too."""
    program = TorchProgram({"x": ((2, 2), "float32")}, {"kept": np.ones(2, np.float32)})
    program.add("aten.copy_.default", "c", (2,), self="b_kept", src="x")
    program.outputs = [program.add("aten.relu.default", "y", (2, 2), self="x")]
    assert refused(program).what == "it writes a value of shape (2, 2) to a tensor of shape (2,)"


@pytest.mark.parametrize(
    ("sizes", "strides"),
    [([4, 5], [5, 1]), ([5, 4], [1, 5]), ([3, 2], [7, 2]), ([2, 3, 3], [9, 1, 1]), ([20], [1])],
)
def test_strides_of_rows(sizes: list[int], strides: list[int]) -> None:
    """Elements are those that lie there, and overlap where strides do."""
    program = TorchProgram({"x": (X.shape, "float32")})
    program.outputs = [program.add("aten.as_strided.default", "y", sizes, self="x", size=sizes,
                                   stride=strides)]  # fmt: skip
    (result,) = run(read(program), {"x": X}).values()
    steps = tuple(4 * step for step in strides)
    assert np.array_equal(result, np.lib.stride_tricks.as_strided(X, sizes, steps))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"size": [4, 6], "stride": [5, 1]}, "its strides depend"),
        ({"size": [4], "stride": [5, 1]}, "sizes (4,) and strides (5, 1)"),
        ({"size": [4], "stride": [-1]}, "sizes (4,) and strides (-1,)"),
        ({"size": [4], "stride": [1], "storage_offset": 2}, "its strides depend"),
        ({"size": [1 << 20, 1 << 20], "stride": [0, 0]}, "the shape (1048576, 1048576)"),
    ],
)  # fmt: skip
def test_strides_that_are_refused(arguments: dict[str, object], text: str) -> None:
    """What lies elsewhere, or takes too much room, is no view of the tensor."""
    program = TorchProgram({"x": (X.shape, "float32")})
    program.outputs = [program.add("aten.as_strided.default", "y", [4], self="x", **arguments)]
    (problem,) = check(program.archive())
    assert text in problem.what


def test_dropout_in_place_is_none_at_inference() -> None:
    """The schema of dropout_ calls its tensor otherwise than that of dropout."""
    program = TorchProgram({"x": (X.shape, "float32")})
    program.add("aten.neg.default", "n", X.shape, self="x")
    program.outputs = [
        program.add("aten.dropout_.default", "y", X.shape, self="n", p=0.5, train=False)
    ]
    (result,) = run(read(program), {"x": X}).values()
    assert np.array_equal(result, -X)


@pytest.mark.parametrize(
    ("operator", "names"),
    [("transpose.int", "dim"), ("swapdims.default", "dim"), ("swapaxes.default", "axis")],
)
def test_axes_that_change_places_are_views(operator: str, names: str) -> None:
    """The schema of swapaxes calls its axes otherwise than those of the other operators."""
    program = TorchProgram({"x": (X.shape, "float32")})
    program.add("aten.neg.default", "n", X.shape, self="x")
    axes = {f"{names}0": 0, f"{names}1": -1}
    program.add(f"aten.{operator}", "turned", X.shape[::-1], self="n", **axes)
    program.add("aten.relu_.default", "y", X.shape[::-1], self="turned")
    program.outputs = [program.add("aten.clone.default", "z", X.shape, self="n"), "y"]
    own, turned = run(read(program), {"x": X}).values()
    assert np.array_equal(own, np.maximum(-X, 0))
    assert np.array_equal(turned, own.T)
