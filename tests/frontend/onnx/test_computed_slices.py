"""Slice at a computed place, of a known length: onnxruntime is the oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

import microtir
from microtir import CompilationConfig, host
from microtir.errors import UnsupportedModelError
from microtir.frontend import from_onnx
from microtir.operators.indexing.definition import Gather
from microtir.rewrite.reference import execute
from tests.support.onnx_models import Array, model_of, run_onnxruntime, typed

pytestmark = pytest.mark.tools

X = np.arange(2 * 7 * 9, dtype=np.float32).reshape(2, 7, 9)


def numbers(*values: int, dtype: Any = np.int64) -> Array:
    """A line of indices."""
    return np.array(values, dtype)


def make(operator: str, inputs: str, output: str, **attributes: Any) -> Any:
    """A node; its inputs by their names, with blanks between."""
    return helper.make_node(operator, inputs.split(" "), [output], **attributes)


def agreed(nodes: Sequence[Any], held: Mapping[str, Array], given_: Mapping[str, Array]) -> None:
    """The model gives what onnxruntime does."""
    inputs = {"x": X, **given_}
    model = model_of(nodes, [typed(name, array) for name, array in inputs.items()], ["y"], held)
    graph = from_onnx(model).graph
    assert graph is not None
    (expected,) = run_onnxruntime(model, inputs)
    found = execute(graph, inputs)["y"]
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


ADDED = [make("Add", "s four", "e"), make("Slice", "x s e axes", "y")]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("start", [0, 2, 5, -9, -5, -6])
def test_end_is_start_and_a_number(start: int, dtype: Any) -> None:
    """Starts below 0 count from the end, and so does the end then."""
    held = {"four": numbers(4, dtype=dtype), "axes": numbers(2, dtype=dtype)}
    agreed(ADDED, held, {"s": numbers(start, dtype=dtype)})


START = {
    "a scalar": [make("Unsqueeze", "i zero", "s"), make("Add", "i three", "l"),
                 make("Unsqueeze", "l zero", "e")],
    "int32 made int64": [make("Cast", "j", "s", to=7), make("Add", "j few", "l"),
                         make("Cast", "l", "e", to=7)],
    "from an end": [make("Unsqueeze", "i zero", "e"), make("Sub", "e line", "s")],
    "picked of several": [make("Gather", "m zero", "s"), make("Gather", "m last", "q"),
                          make("Sub", "s q", "d"), make("Add", "q d", "p"),
                          make("Add", "p line", "e")],
    "doubled": [make("Unsqueeze", "i zero", "h"), make("Mul", "h two", "s"),
                make("Add", "h h", "o"), make("Add", "o line", "e")],
    "by a shape": [make("Unsqueeze", "i zero", "s"), make("Shape", "x", "n"),
                   make("Gather", "n zero", "two_"), make("Add", "s two_", "e")],
    "negated": [make("Unsqueeze", "i zero", "h"), make("Neg", "h", "g"), make("Neg", "g", "s"),
                make("Sub", "line g", "e")],
    "a greatest": [make("ReduceMax", "x", "b", keepdims=0), make("Cast", "b", "c", to=7),
                   make("Mod", "c six", "r"), make("Unsqueeze", "r zero", "s"),
                   make("Add", "s line", "e")],
}  # fmt: skip


@pytest.mark.parametrize("way", START)
def test_ways_to_a_start_and_an_end(way: str) -> None:
    """The distance is found through arithmetic, conversions and moves."""
    held = {
        "zero": numbers(0), "last": numbers(2), "line": numbers(3), "two": numbers(2),
        "three": np.array(3, np.int64), "few": numbers(3, dtype=np.int32), "axis": numbers(1),
        "six": np.array(4, np.int64),
    }  # fmt: skip
    given_: dict[str, Array] = {
        "i": np.array(3 if way == "from an end" else 2, np.int64),
        "j": numbers(1, dtype=np.int32), "m": numbers(1, 9, 4),
    }  # fmt: skip
    nodes = [*START[way], make("Slice", "x s e axis", "y")]
    used = {name for node in nodes for name in node.input}
    agreed(
        nodes,
        {name: array for name, array in held.items() if name in used},
        {name: array for name, array in given_.items() if name in used},
    )


@given(st.integers(0, 1 << 32))
@settings(max_examples=40)
def test_several_axes_and_steps(seed: int) -> None:
    """Known and computed axes in any order, steps forwards and backwards, inside of the tensor."""
    rng = np.random.default_rng(seed)
    axes = rng.permutation(3)[: int(rng.integers(1, 4))]
    starts, distances, steps, known = [], [], [], []
    for axis in axes:
        size = X.shape[axis]
        step = int(rng.choice([1, 1, 2, 3, -1, -2]))
        length = int(rng.integers(1, -(-size // abs(step)) + 1))
        span = abs(step) * (length - 1)
        start = int(rng.integers(0, size - span)) + (span if step < 0 else 0)
        distance = length * step if abs(step) == 1 else (span + 1) * (1 if step > 0 else -1)
        if start + distance >= 0 and step > 0 and rng.random() < 0.4 and start + distance < size:
            start -= size  # and so is the end counted from the end
        if start + distance < 0 <= start:  # an end before the first place has no number of its own
            start, distance, step = 0, 1, 1
        starts.append(start)
        distances.append(distance)
        steps.append(step)
        known.append(bool(rng.random() < 0.3))
    dtype: Any = (np.int32, np.int64)[int(rng.integers(2))]
    offset = np.where(known, starts, 0).astype(dtype)
    held = {
        "fixed": offset, "mask": np.where(known, 0, 1).astype(dtype),
        "far": np.array(distances, dtype), "axes": axes.astype(dtype),
        "steps": np.array(steps, dtype),
    }  # fmt: skip
    nodes = [
        make("Mul", "i mask", "m"), make("Add", "m fixed", "s"), make("Add", "s far", "e"),
        make("Slice", "x s e axes steps", "y"),
    ]  # fmt: skip
    agreed(nodes, held, {"i": np.array(starts, dtype)})


def test_what_does_not_fit_is_moved() -> None:
    """Onnxruntime gives fewer elements there; the length of a tensor is fixed here."""
    model = model_of(ADDED, [typed("x", X), typed("s", (1,), np.int64)], ["y"],
                     {"four": numbers(4), "axes": numbers(2)})  # fmt: skip
    graph = from_onnx(model).graph
    assert graph is not None
    for start, begin in ((7, 5), (99, 5), (1 << 40, 5), (-99, 0), (-2, 5)):
        found = execute(graph, {"x": X, "s": numbers(start)})["y"]
        np.testing.assert_array_equal(found, X[:, :, begin : begin + 4])


def test_an_end_that_crosses_zero_is_the_last_place() -> None:
    """Onnxruntime takes the end 0 for the first place, and gives nothing."""
    model = model_of(ADDED, [typed("x", X), typed("s", (1,), np.int64)], ["y"],
                     {"four": numbers(2), "axes": numbers(2)})  # fmt: skip
    graph = from_onnx(model).graph
    assert graph is not None
    inputs = {"x": X, "s": numbers(-2)}
    np.testing.assert_array_equal(execute(graph, inputs)["y"], X[:, :, -2:])
    assert run_onnxruntime(model, inputs)[0].shape == (2, 7, 0)


def test_the_c() -> None:
    """Generated code takes the same part, with steps back from a computed start."""
    nodes = [make("Add", "s far", "e"), make("Slice", "x s e axes steps", "y")]
    held = {"far": numbers(-5, 2), "axes": numbers(2, 1), "steps": numbers(-2, 1)}
    model = model_of(nodes, [typed("x", X), typed("s", (2,), np.int64)], ["y"], held)
    module = from_onnx(model)
    loaded = host.load(microtir.build(module, CompilationConfig(targets="c", module_name="m")))
    for start in ((8, 0), (6, 5), (-1, -7)):
        inputs = {"x": X, "s": numbers(*start)}
        expected = X[:, start[1] % 7 :, :][:, :2, start[0] % 9 :: -2][:, :, :3]
        np.testing.assert_array_equal(loaded.run(inputs)["y"], expected)


def test_no_index_is_gathered() -> None:
    """A part is copied; it is not gathered element by element."""
    model = model_of(ADDED, [typed("x", X), typed("s", (1,), np.int64)], ["y"],
                     {"four": numbers(4), "axes": numbers(2)})  # fmt: skip
    graph = from_onnx(model).graph
    assert graph is not None
    assert not any(isinstance(node.op, Gather) for node in graph.nodes)


@pytest.mark.parametrize(
    "nodes",
    [
        [make("Slice", "x s t axes", "y")],
        [make("Slice", "x s big axes", "y")],
        [make("Slice", "x four s axes", "y")],
        [make("Sub", "s four", "e"), make("Slice", "x s e axes", "y")],
        [make("Add", "s t", "e"), make("Slice", "x s e axes", "y")],
        [make("Mul", "s s", "p"), make("Add", "s four", "e"), make("Slice", "x p e axes", "y")],
    ],
)
def test_unknown_lengths_are_refused(nodes: Sequence[Any]) -> None:
    """The error says what is not known, and how to write it."""
    inputs = [typed("x", X), typed("s", (1,), np.int64), typed("t", (1,), np.int64)]
    held = {"four": numbers(4), "axes": numbers(2), "big": numbers(1 << 40)}
    with pytest.raises(UnsupportedModelError, match="their distance is not known") as found:
        from_onnx(model_of(nodes, inputs, ["y"], held))
    assert "slice with a constant length" in str(found.value)


def test_a_loop_may_run_out_of_elements() -> None:
    """Of the last turns the part is shorter; turns of known numbers are written out then."""
    body = helper.make_graph(
        [
            make("Add", "n two", "e"), make("Unsqueeze", "n axis", "s"),
            make("Unsqueeze", "e axis", "t"), make("Slice", "x s t axes", "part"),
            make("ReduceSum", "part", "sum", keepdims=0), make("Add", "total sum", "more"),
            make("Identity", "go", "on"),
        ],
        "body",
        [typed("n", (), np.int64), typed("go", (), np.bool_), typed("total", ())],
        [typed("on", (), np.bool_), typed("more", ())],
    )  # fmt: skip
    nodes = [helper.make_node("Loop", ["turns", "yes", "begin"], ["y"], body=body)]
    held = {
        "turns": np.array(9, np.int64), "yes": np.array(True), "begin": np.array(0, np.float32),
        "two": np.array(2, np.int64), "axis": numbers(0), "axes": numbers(2),
    }  # fmt: skip
    agreed(nodes, held, {})
