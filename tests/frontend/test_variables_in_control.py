"""Variables that loops and branches of a TFLite file assign."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import microtir
from microtir import CompilationConfig, host
from microtir.config.enums import Optimize
from microtir.frontend import from_tflite
from microtir.frontend.tflite_subgraphs import IfOptions, WhileOptions
from microtir.graph.ir import Graph
from microtir.operators.arithmetic.tflite import AddOptions
from microtir.operators.common.tflite_schema import BuiltinOperator, FusedOptions
from microtir.operators.control.definition import EndIf, Repeat
from microtir.rewrite.reference import execute_steps
from microtir.rewrite.verify import verify
from microtir.writers.tflite import TfliteBuilder
from tests.frontend.models import refusal
from tests.support.stateful import handle, initialised

Code = BuiltinOperator
Array = npt.NDArray[Any]

SHAPE = (1, 3)
FIRST = np.array([[1.0, -2.0, 0.5]], np.float32)
RUNS = 50
TIMEOUT = 120  # seconds: tflite-micro ends no loop whose condition it gets wrong
GENERATOR = np.random.default_rng(3)
STEPS = [GENERATOR.integers(-4, 5, SHAPE).astype(np.float32) / 4 for _ in range(RUNS)]


def floats(builder: TfliteBuilder, *names: str) -> list[int]:
    """Add tensors of the shape of all values."""
    return [builder.tensor(name, SHAPE, np.float32) for name in names]


def constant(builder: TfliteBuilder, name: str, value: float | int) -> int:
    """Add a scalar."""
    dtype = np.int32 if isinstance(value, int) else np.float32
    return builder.tensor(name, (), dtype, np.array(value, dtype))


def added(builder: TfliteBuilder, left: int, right: int, name: str) -> int:
    """Add the sum of two values."""
    (result,) = floats(builder, name)
    builder.operator(Code.ADD, [left, right], [result], AddOptions())
    return result


def halved(builder: TfliteBuilder, value: int, name: str) -> int:
    """Add half of a value."""
    (result,) = floats(builder, name)
    builder.operator(
        Code.MUL, [value, constant(builder, f"{name}_half", 0.5)], [result], FusedOptions()
    )
    return result


def read(builder: TfliteBuilder, variable: int, name: str) -> int:
    """Add what a variable holds."""
    (result,) = floats(builder, name)
    builder.operator(Code.READ_VARIABLE, [variable], [result])
    return result


def counter(graph: TfliteBuilder, count: int) -> int:
    """Add the count of the next turn."""
    grown = graph.tensor("grown", (), np.int32)
    graph.operator(Code.ADD, [count, constant(graph, "one", 1)], [grown], AddOptions())
    return grown


def condition(builder: TfliteBuilder, ports: int, turns: int, limit: float | None = None) -> int:
    """Add the condition of a loop: a count, and that the first item of `sum` is below a limit."""
    graph = builder.subgraph("condition")
    given = [graph.tensor("i", (), np.int32), *floats(graph, *(f"v{n}" for n in range(ports)))]
    flag = graph.tensor("flag", (), np.bool_)
    graph.operator(Code.LESS, [given[0], constant(graph, "turns", turns)], [flag])
    if limit is not None:
        largest, below, both = (
            graph.tensor(name, (), dtype)
            for name, dtype in (("largest", np.float32), ("below", np.bool_), ("both", np.bool_))
        )
        axes = graph.tensor("axes", (2,), np.int32, np.array([0, 1], np.int32))
        graph.operator(Code.REDUCE_MAX, [read(graph, handle(graph), "held"), axes], [largest])
        graph.operator(Code.LESS, [largest, constant(graph, "limit", limit)], [below])
        graph.operator(Code.LOGICAL_AND, [flag, below], [both])
        flag = both
    graph.define(given, [flag])
    return graph.number


def looping(turns: int = 4, limit: float | None = None, first: Array | None = FIRST) -> bytes:
    """A model whose turns halve a variable and add the input; its output is from both sides."""
    builder = TfliteBuilder()
    if first is not None:
        initialised(builder, first)
    (x,) = floats(builder, "x")
    before = read(builder, handle(builder), "before")
    body = builder.subgraph("body")
    count, (value,) = body.tensor("i", (), np.int32), floats(body, "v")
    variable = handle(body)
    new = added(body, halved(body, read(body, variable, "old"), "half"), value, "new")
    body.operator(Code.ASSIGN_VARIABLE, [variable, new], [])
    body.define([count, value], [counter(body, count), value])
    ends = [builder.tensor("end", (), np.int32), *floats(builder, "same")]
    options = WhileOptions(condition(builder, 1, turns, limit), body.number)
    builder.operator(Code.WHILE, [constant(builder, "zero", 0), x], ends, options)
    behind = read(builder, handle(builder), "behind")
    out = added(builder, before, behind, "out")
    return builder.build([x], [out])


def nested() -> bytes:
    """A model whose loop assigns two variables, one of them in a branch of each turn."""
    builder = TfliteBuilder()
    initialised(builder, FIRST)
    (x,) = floats(builder, "x")
    body = builder.subgraph("body")
    count, (value,) = body.tensor("i", (), np.int32), floats(body, "v")
    total, other = handle(body), handle(body, "other")
    grown = added(body, read(body, total, "old"), value, "sum_new")
    body.operator(Code.ASSIGN_VARIABLE, [total, halved(body, grown, "half")], [])
    flag = body.tensor("odd", (), np.bool_)
    body.operator(Code.GREATER, [count, constant(body, "middle", 1)], [flag])
    branches = []
    for name in ("then", "else"):
        graph = body.subgraph(name)
        (given,) = floats(graph, "given")
        if name == "then":
            kept = handle(graph, "other")
            new = added(graph, read(graph, kept, "kept"), given, "more")
            graph.operator(Code.ASSIGN_VARIABLE, [kept, new], [])
        result = added(graph, given, given, "result")
        graph.define([given], [result])
        branches.append(graph.number)
    (chosen,) = floats(body, "chosen")
    body.operator(Code.IF, [flag, grown], [chosen], IfOptions(*branches))
    read(body, other, "unused")
    body.define([count, value], [counter(body, count), value])
    ends = [builder.tensor("end", (), np.int32), *floats(builder, "same")]
    options = WhileOptions(condition(builder, 1, 4), body.number)
    builder.operator(Code.WHILE, [constant(builder, "zero", 0), x], ends, options)
    first, second = (
        read(builder, handle(builder, name), f"{name}_out") for name in ("sum", "other")
    )
    return builder.build([x], [added(builder, first, second, "out")])


def choosing() -> bytes:
    """A model that assigns a variable in one branch, and gives what it holds behind both."""
    builder = TfliteBuilder()
    initialised(builder, FIRST)
    (x,) = floats(builder, "x")
    axes = builder.tensor("axes", (2,), np.int32, np.array([0, 1], np.int32))
    most, flag = builder.tensor("most", (), np.float32), builder.tensor("flag", (), np.bool_)
    builder.operator(Code.REDUCE_MAX, [x, axes], [most])
    builder.operator(Code.GREATER, [most, constant(builder, "zero", 0.25)], [flag])
    branches = []
    for name in ("then", "else"):
        graph = builder.subgraph(name)
        (given,) = floats(graph, "given")
        variable = handle(graph)
        old = read(graph, variable, "old")
        new = added(graph, old, given, "new")
        if name == "then":
            graph.operator(Code.ASSIGN_VARIABLE, [variable, new], [])
        graph.define([given], [added(graph, new, old, "result")])
        branches.append(graph.number)
    (chosen,) = floats(builder, "chosen")
    builder.operator(Code.IF, [flag, x], [chosen], IfOptions(*branches))
    behind = read(builder, handle(builder), "behind")
    return builder.build([x], [added(builder, chosen, behind, "out")])


def handed_on() -> bytes:
    """A model whose loop is given the handle, which each turn hands on."""
    builder = TfliteBuilder()
    initialised(builder, FIRST)
    (x,) = floats(builder, "x")
    variable = handle(builder)

    def ports(graph: TfliteBuilder) -> list[int]:
        named = [graph.tensor("i", (), np.int32), graph.tensor("h", (), "resource")]
        return [*named, *floats(graph, "v")]

    asks, body = builder.subgraph("condition"), builder.subgraph("body")
    asked, given = ports(asks), ports(body)
    flag = asks.tensor("flag", (), np.bool_)
    asks.operator(Code.LESS, [asked[0], constant(asks, "turns", 3)], [flag])
    asks.define(asked, [flag])
    new = added(body, halved(body, read(body, given[1], "old"), "half"), given[2], "new")
    body.operator(Code.ASSIGN_VARIABLE, [given[1], new], [])
    body.define(given, [counter(body, given[0]), *given[1:]])
    ends = [builder.tensor("end", (), np.int32), builder.tensor("h", (), "resource")]
    ends += floats(builder, "same")
    options = WhileOptions(asks.number, body.number)
    builder.operator(Code.WHILE, [constant(builder, "zero", 0), variable, x], ends, options)
    return builder.build([x], [added(builder, read(builder, ends[1], "behind"), x, "out")])


MODELS: dict[str, Callable[[], bytes]] = {
    "loop": looping,
    "guarded_loop": lambda: looping(9, 3.0),
    "one_turn": lambda: looping(1),
    "no_turn": lambda: looping(0),
    "first_zero": lambda: looping(first=None),
    "nested": nested,
    "branch": choosing,
    "handed_on": handed_on,
}


def graph_of(data: bytes) -> Graph:
    """The graph of a model, verified."""
    graph = from_tflite(data).graph
    assert graph is not None
    verify(graph)
    return graph


def by_reference(data: bytes) -> list[Array]:
    """The outputs of the reference, run by run."""
    return [step["out"] for step in execute_steps(graph_of(data), [{"x": x} for x in STEPS])]


_LITERT = """
import sys
import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
model, given, made = sys.argv[1:]
interpreter = Interpreter(
    model, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
interpreter.allocate_tensors()
(x,), (y,) = interpreter.get_input_details(), interpreter.get_output_details()
results = []
for step in np.load(given):
    interpreter.set_tensor(x["index"], step)
    interpreter.invoke()
    results.append(interpreter.get_tensor(y["index"]))
np.save(made, np.stack(results))
"""
_TFLM = """
import sys
import numpy as np
from tflite_micro import runtime
model, given, made = sys.argv[1:]
interpreter = runtime.Interpreter.from_file(model, arena_size=1 << 16)
results = []
for step in np.load(given):
    interpreter.set_input(step, 0)
    interpreter.invoke()
    results.append(np.array(interpreter.get_output(0)))
np.save(made, np.stack(results))
"""


def by_interpreter(program: str, data: bytes, folder: Path) -> Array:
    """The outputs of an interpreter in a process of its own, run by run."""
    (folder / "model.tflite").write_bytes(data)
    np.save(folder / "given.npy", np.stack(STEPS))
    command = [sys.executable, "-c", program, "model.tflite", "given.npy", "made.npy"]
    subprocess.run(command, cwd=folder, check=True, timeout=TIMEOUT, capture_output=True)
    made: Array = np.load(folder / "made.npy")
    return made


@pytest.mark.tools
@pytest.mark.parametrize(
    ("name", "program"),
    [
        *((name, _TFLM) for name in MODELS),
        # LiteRT refuses to read what nobody has assigned.
        *((name, _LITERT) for name in MODELS if name not in ("first_zero", "nested")),
    ],
)
def test_sequences_equal_an_interpreter(name: str, program: str, tmp_path: Path) -> None:
    """Each of 50 runs begins with what the turns of the one before have left."""
    data = MODELS[name]()
    wanted = by_interpreter(program, data, tmp_path)
    np.testing.assert_array_equal(np.stack(by_reference(data)), wanted)


@pytest.mark.tools
@pytest.mark.parametrize("name", MODELS)
def test_c_equals_the_reference(name: str) -> None:
    """The variable of a loop is carried from turn to turn, and to the next run."""
    data, goals = MODELS[name](), (Optimize.RAM_LEAST, Optimize.SPEED)
    goal = goals[len(name) % 2]
    config = CompilationConfig(targets="c", optimize=goal.value, module_name=name)
    model = host.load(microtir.build(from_tflite(data), config))
    for number, (got, want) in enumerate(
        zip(model.run_sequence([{"x": x} for x in STEPS]), by_reference(data), strict=True)
    ):
        np.testing.assert_array_equal(got["out"], want, err_msg=f"{name}, run {number}")


def test_the_variable_is_one_value_of_the_loop() -> None:
    """Neither the count nor what turns hand on is; a branch gives it beside its results."""
    graph = graph_of(looping())
    (repeat,) = [node for node in graph.nodes if isinstance(node.op, Repeat)]
    assert (repeat.op, len(repeat.outputs)) == (Repeat(4), 1)
    (end,) = [node for node in graph_of(choosing()).nodes if isinstance(node.op, EndIf)]
    assert len(end.outputs) == 2
    assert len(graph.states) == 1


def test_a_condition_that_assigns_is_refused() -> None:
    """It would be assigned once more often than the body runs."""
    builder = TfliteBuilder()
    (x,) = floats(builder, "x")
    asks, body = builder.subgraph("condition"), builder.subgraph("body")
    count, (value,) = asks.tensor("i", (), np.int32), floats(asks, "v")
    asks.operator(Code.ASSIGN_VARIABLE, [handle(asks), value], [])
    flag = asks.tensor("flag", (), np.bool_)
    asks.operator(Code.LESS, [count, constant(asks, "turns", 3)], [flag])
    asks.define([count, value], [flag])
    count, (value,) = body.tensor("i", (), np.int32), floats(body, "v")
    body.define([count, value], [counter(body, count), added(body, value, value, "twice")])
    ends = [builder.tensor("end", (), np.int32), *floats(builder, "out")]
    options = WhileOptions(asks.number, body.number)
    builder.operator(Code.WHILE, [constant(builder, "zero", 0), x], ends, options)
    assert "the condition of the loop assigns a variable" in refusal(builder.build([x], [ends[1]]))
