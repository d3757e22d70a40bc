"""WHILE and IF of TFLite files: turns that are known, lists, branches, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import microtir
from microtir import CompilationConfig, Target
from microtir.artifact import Artifact
from microtir.config.enums import Optimize
from microtir.frontend import check, from_tflite, signatures
from microtir.frontend.tflite_subgraphs import IfOptions, WhileOptions
from microtir.graph.ir import Graph
from microtir.host.oracle import Oracle, expected_outputs
from microtir.host.samples import SampleBatch
from microtir.operators.arithmetic.tflite import AddOptions, SubOptions
from microtir.operators.common.tflite_schema import BuiltinOperator, FusedOptions
from microtir.operators.control.definition import EndIf, Repeat
from microtir.operators.movement.tflite import ConcatenationOptions
from microtir.rewrite.reference import execute
from microtir.rewrite.verify import verify
from microtir.support.names import module_name_from
from microtir.writers.tflite import TfliteBuilder
from tests.frontend.models import refusal

Code = BuiltinOperator
Array = npt.NDArray[Any]

X = np.array([[1.5, -2.0, 0.25]], np.float32)
SHAPE = X.shape


class Loop:
    """A loop over a counter and values of one shape, made as converters make them."""

    def __init__(self, values: int, start: int = 0) -> None:
        self.main = TfliteBuilder()
        self.x = self.main.tensor("x", SHAPE, np.float32)
        self.count = self.main.tensor("start", (), np.int32, np.array(start, np.int32))
        self.condition = self.main.subgraph("condition")
        self.body = self.main.subgraph("body")
        self.of_condition = self._ports(self.condition, values)
        self.of_body = self._ports(self.body, values)

    def _ports(self, graph: TfliteBuilder, values: int) -> list[int]:
        named = [graph.tensor("i", (), np.int32)]
        return named + [graph.tensor(f"v{n}", SHAPE, np.float32) for n in range(values)]

    def limit(self, code: BuiltinOperator, limit: int, *, mirrored: bool = False) -> None:
        """Let the loop go on while the counter compares so with a limit."""
        graph = self.condition
        bound = graph.tensor("limit", (), np.int32, np.array(limit, np.int32))
        self.flag = flag = graph.tensor("flag", (), np.bool_)
        pair = [bound, self.of_condition[0]] if mirrored else [self.of_condition[0], bound]
        graph.operator(code, pair, [flag])
        graph.define(self.of_condition, [flag])

    def and_below(self, limit: float) -> None:
        """Let the loop end, too, where an item of its first value reaches a limit."""
        graph = self.condition
        most = graph.tensor("most", (), np.float32, np.array(limit, np.float32))
        axes = graph.tensor("axes", (2,), np.int32, np.array([0, 1], np.int32))
        largest = graph.tensor("largest", (), np.float32)
        below, both = (graph.tensor(name, (), np.bool_) for name in ("below", "both"))
        graph.operator(Code.REDUCE_MAX, [self.of_condition[1], axes], [largest])
        graph.operator(Code.LESS, [largest, most], [below])
        graph.operator(Code.LOGICAL_AND, [self.flag, below], [both])
        graph.define(self.of_condition, [both])

    def step(self, size: int = 1) -> int:
        """The counter after a turn."""
        step = self.body.tensor("step", (), np.int32, np.array(size, np.int32))
        grown = self.body.tensor("grown", (), np.int32)
        self.body.operator(Code.ADD, [self.of_body[0], step], [grown], AddOptions())
        return grown

    def made(self, code: BuiltinOperator, left: int, right: int, options: Any) -> int:
        """The result of an operator of the body."""
        result = self.body.tensor(f"t{left}_{right}", SHAPE, np.float32)
        self.body.operator(code, [left, right], [result], options)
        return result

    def built(self, results: Sequence[int], outputs: Sequence[int]) -> bytes:
        """The model: the body gives `results`, the model some values, by number."""
        self.body.define(self.of_body, results)
        given = [self.count, *[self.x] * (len(results) - 1)]
        ends = [self.main.tensor("end", (), np.int32)]
        ends += [self.main.tensor(f"out{n}", SHAPE, np.float32) for n in range(len(results) - 1)]
        options = WhileOptions(self.condition.number, self.body.number)
        self.main.operator(Code.WHILE, given, ends, options)
        return self.main.build([self.x], [ends[number] for number in outputs])


def counted(limit: int, code: BuiltinOperator = Code.LESS, **of_loop: int) -> bytes:
    """A model that adds x to a value in each turn."""
    loop = Loop(1, of_loop.get("start", 0))
    loop.limit(code, limit, mirrored=bool(of_loop.get("mirrored", 0)))
    value = loop.of_body[1]
    doubled = loop.made(Code.ADD, value, value, AddOptions())
    return loop.built([loop.step(of_loop.get("step", 1)), doubled], [1])


def exchanging() -> bytes:
    """A model whose turns exchange two values, after one of them has grown."""
    loop = Loop(3)
    loop.limit(Code.LESS, 5)
    _, a, b, c = loop.of_body
    grown = loop.made(Code.ADD, a, c, AddOptions())
    return loop.built([loop.step(), b, grown, b], [1, 2, 3])


def graph_of(data: bytes) -> Graph:
    """The graph of a model, verified."""
    graph = from_tflite(data).graph
    assert graph is not None
    verify(graph)
    return graph


def turns(data: bytes) -> list[int]:
    """How often the loops of a model run."""
    return [node.op.turns for node in graph_of(data).nodes if isinstance(node.op, Repeat)]


def check_all(data: bytes, x: Array, name: str) -> None:
    """The reference equals tflite-micro, and C at each goal the reference."""
    graph = graph_of(data)
    (argument,) = graph.arguments
    expected = execute(graph, {argument.name: x})
    samples = SampleBatch(({argument.name: x},))
    (by_tflm,) = expected_outputs(Oracle.TFLM, graph, data, samples).values
    for output, want in by_tflm.items():
        np.testing.assert_allclose(expected[output], want, rtol=1e-6)
    for goal in (Optimize.SPEED, Optimize.RAM_LEAST):
        config = CompilationConfig.from_target(Target("c"))
        config = config.with_(optimize=goal, module_name=module_name_from(name))
        model = microtir.host.load(microtir.build(from_tflite(data), config))
        for output, got in model.run({argument.name: x}).items():
            np.testing.assert_allclose(got, expected[output], rtol=1e-6, err_msg=goal.value)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (counted(5), [5]),
        (counted(5, Code.LESS_EQUAL), [6]),
        (counted(-7, Code.GREATER, step=-3), [3]),
        (counted(0, Code.GREATER_EQUAL, start=4, step=-2), [3]),
        (counted(10, Code.GREATER, step=4, mirrored=1), [3]),
        (counted(1), []),
        (counted(0), []),
    ],
)
def test_turns_are_counted(data: bytes, expected: list[int]) -> None:
    """One turn is no loop, and none is nothing."""
    assert turns(data) == expected


@pytest.mark.tools
@pytest.mark.parametrize(
    ("make", "outputs"), [(lambda: counted(5), 1), (exchanging, 3), (lambda: counted(1), 1)]
)
def test_loops_equal_tflite_micro(make: Callable[[], bytes], outputs: int) -> None:
    """Values go from turn to turn all at once, also where they exchange places."""
    check_all(make(), X, f"loop_{outputs}")


@pytest.mark.tools
@pytest.mark.parametrize("x", [X, X * 100])
def test_a_loop_may_end_before_its_counter(x: Array) -> None:
    """What else the condition asks for guards each turn."""
    loop = Loop(1)
    loop.limit(Code.LESS, 9)
    loop.and_below(40.0)
    value = loop.of_body[1]
    data = loop.built([loop.step(), loop.made(Code.ADD, value, value, AddOptions())], [1])
    assert turns(data) == [9]
    check_all(data, x, "guarded")


@pytest.mark.tools
def test_lists_are_filled_in_place() -> None:
    """What is before item i, the item, and what is behind it are the list with item i replaced."""
    builder = TfliteBuilder()
    x = builder.tensor("x", (4, 3), np.float32)
    zero = builder.tensor("zero", (), np.int32, np.array(0, np.int32))
    items = builder.tensor("items", (4, 3), np.float32, np.zeros((4, 3), np.float32))
    condition, body = builder.subgraph("condition"), builder.subgraph("body")
    named = [
        [g.tensor("i", (), np.int32), g.tensor("l", (4, 3), np.float32),
         g.tensor("x", (4, 3), np.float32)]
        for g in (condition, body)
    ]  # fmt: skip
    flag = condition.tensor("flag", (), np.bool_)
    limit = condition.tensor("limit", (), np.int32, np.array(4, np.int32))
    condition.operator(Code.LESS, [named[0][0], limit], [flag])
    condition.define(named[0], [flag])
    i, old, given = named[1]

    def numbers(name: str, *values: int) -> int:
        return body.tensor(name, (len(values),), np.int32, np.array(values, np.int32))

    def joined(name: str, first: int, rest: int) -> int:
        shaped, both = body.tensor(f"{name}1", (1,), np.int32), body.tensor(name, (2,), np.int32)
        body.operator(Code.RESHAPE, [first, numbers(f"{name}s", 1)], [shaped])
        body.operator(Code.CONCATENATION, [shaped, rest], [both], ConcatenationOptions())
        return both

    one = body.tensor("one", (), np.int32, np.array(1, np.int32))
    next_ = body.tensor("next", (), np.int32)
    body.operator(Code.ADD, [i, one], [next_], AddOptions())
    item = body.tensor("item", (1, 3), np.float32)
    row = body.tensor("row", (1, 3), np.float32, np.array([[2.0, 3.0, 5.0]], np.float32))
    first = body.tensor("first", (1, 3), np.float32)
    body.operator(Code.SLICE, [given, numbers("begin", 1, 0), numbers("size", 1, 3)], [first])
    body.operator(Code.MUL, [first, row], [item], FusedOptions())
    before, behind = (body.tensor(name, (1, 1), np.float32) for name in ("before", "behind"))
    until = joined("until", i, numbers("rest", -1))
    body.operator(Code.SLICE, [old, numbers("zeros", 0, 0), until], [before])
    since = joined("since", next_, numbers("none", 0))
    body.operator(Code.SLICE, [old, since, numbers("all", -1, -1)], [behind])
    new = body.tensor("new", (4, 3), np.float32)
    body.operator(Code.CONCATENATION, [before, item, behind], [new], ConcatenationOptions())
    body.define(named[1], [next_, new, given])
    ends = [builder.tensor("end", (), np.int32), builder.tensor("list", (4, 3), np.float32),
            builder.tensor("same", (4, 3), np.float32)]  # fmt: skip
    builder.operator(
        Code.WHILE, [zero, items, x], ends, WhileOptions(condition.number, body.number)
    )
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    data = builder.build([x], [ends[1]])
    graph = graph_of(data)
    got = execute(graph, {"x": values})["list"]
    np.testing.assert_array_equal(got, np.tile(values[1] * np.array([2, 3, 5], np.float32), (4, 1)))
    model = microtir.host.load(microtir.build(from_tflite(data), Target("c")))
    np.testing.assert_array_equal(model.run({"x": values})["list"], got)


@pytest.mark.parametrize(("is_guarded", "comment"), [(False, "7"), (True, "At most 7")])
def test_costs_count_as_often_as_a_loop_runs(is_guarded: bool, comment: str) -> None:
    """And the C says how often that is, or at most is."""
    loop = Loop(1)
    loop.limit(Code.LESS, 7)
    if is_guarded:
        loop.and_below(40.0)
    value = loop.of_body[1]
    data = loop.built([loop.step(), loop.made(Code.ADD, value, value, AddOptions())], [1])
    artifact = microtir.build(from_tflite(data), Target("c"))
    assert f"/* {comment} iterations. */" in artifact.source("model.c")
    assert turns(counted(1)) == []
    once = microtir.build(from_tflite(counted(1)), Target("c"))
    assert instructions_of_sum(artifact) == 7 * instructions_of_sum(once)


def instructions_of_sum(artifact: Artifact) -> int:
    """What the addition in a loop costs."""
    model = artifact.module.model
    assert model is not None
    (found,) = (d.instructions for d in model.decisions.values() if d.layer.endswith("t1_1"))
    return found


def choosing() -> bytes:
    """A model that adds or subtracts weights, as the sign of a comparison says."""
    builder = TfliteBuilder()
    x = builder.tensor("x", SHAPE, np.float32)
    weights = builder.tensor("weights", SHAPE, np.float32, np.array([[10, 20, 30]], np.float32))
    axes = builder.tensor("axes", (2,), np.int32, np.array([0, 1], np.int32))
    most, flag = builder.tensor("most", (), np.float32), builder.tensor("flag", (), np.bool_)
    zero = builder.tensor("zero", (), np.float32, np.float32(0))
    builder.operator(Code.REDUCE_MAX, [x, axes], [most])
    builder.operator(Code.GREATER, [most, zero], [flag])
    branches = []
    for name, code, options in (
        ("then", Code.ADD, AddOptions()), ("else", Code.SUB, SubOptions()),
    ):  # fmt: skip
        graph = builder.subgraph(name)
        a, b, y = (graph.tensor(n, SHAPE, np.float32) for n in ("a", "b", "y"))
        graph.operator(code, [a, b], [y], options)
        graph.define([a, b], [y])
        branches.append(graph.number)
    out = builder.tensor("out", SHAPE, np.float32)
    builder.operator(Code.IF, [flag, x, weights], [out], IfOptions(*branches))
    return builder.build([x], [out])


@pytest.mark.tools
@pytest.mark.parametrize("x", [X, -np.abs(X)])
def test_branches_equal_tflite_micro(x: Array) -> None:
    """One of both runs; their results have one memory."""
    data = choosing()
    assert sum(isinstance(node.op, EndIf) for node in graph_of(data).nodes) == 1
    check_all(data, x, "branches")


def test_loops_without_a_bound_are_refused() -> None:
    """The counter must approach its limit, and from a start that is known."""
    for data in (counted(5, step=-1), counted(-5, Code.GREATER), counted(5, step=0)):
        text = refusal(data)
        assert "the loop has no bound on its iterations" in text
        assert "fix:      give the loop a fixed number of steps" in text


def test_subgraphs_take_what_they_are_given() -> None:
    """Numbers of tensors, their shapes, and the subgraph itself are checked."""
    loop = Loop(1)
    loop.limit(Code.LESS, 3)
    data = loop.built([loop.step()], [0])
    assert "its subgraph 'condition' has 2 inputs and 1 outputs" in refusal(data)
    builder = TfliteBuilder()
    x, y = (builder.tensor(name, SHAPE, np.float32) for name in "xy")
    builder.operator(Code.WHILE, [x], [y], WhileOptions(0, 7))
    assert "it calls subgraph 0" in refusal(builder.build([x], [y]))


def coder() -> bytes:
    """A file of two programs."""
    builder = TfliteBuilder()
    x, y = (builder.tensor(name, SHAPE, np.float32) for name in "xy")
    builder.operator(Code.ADD, [x, x], [y], AddOptions())
    builder.signature("decode")
    other = builder.subgraph("other")
    a, b = (other.tensor(name, SHAPE, np.float32) for name in "ab")
    other.operator(Code.MUL, [a, a], [b], FusedOptions())
    other.define([a], [b])
    other.signature("encode")
    return builder.build([x], [y])


def test_signatures_name_the_programs_of_a_file() -> None:
    """The first subgraph is the model unless another one is asked for."""
    data = coder()
    assert signatures(data) == ("decode", "encode")
    for signature, op in ((None, "add"), ("decode", "add"), ("encode", "mul")):
        assert not check(data, signature=signature)
        graph = from_tflite(data, signature=signature).graph
        assert graph is not None
        assert [node.op.name for node in graph.nodes] == [op]
    (problem,) = check(data, signature="encod")
    assert "no signature 'encod'" in str(problem)
    assert "did you mean 'encode'?" in str(problem)
