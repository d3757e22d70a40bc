"""Loops in ONNX are loops of the graph: their code does not grow with the number of turns."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

import microtir
from microtir import CompilationConfig, Target, build
from microtir.errors import UnsupportedModelError
from microtir.frontend import from_onnx
from microtir.graph.ir import Graph
from microtir.module.ir_module import IRModule
from microtir.operators.control.definition import EndRepeat, Guard, PutItem, Repeat
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.movement.definition import Transpose
from microtir.rewrite.reference import execute
from microtir.rewrite.verify import verify
from tests.support.batch import load_batch
from tests.support.onnx_models import (
    REPLAY,
    Array,
    model_of,
    run_onnxruntime,
    typed,
    with_inferred_outputs,
)

pytestmark = pytest.mark.tools

RNG = np.random.default_rng(3)


def drawn(*shape: int) -> Array:
    """Random values."""
    return RNG.standard_normal(shape).astype(np.float32)


@dataclass(frozen=True)
class Case:
    """A model with a loop, its inputs, and what a loop of the graph has of each kind."""

    name: str
    model: bytes
    inputs: dict[str, Array]
    kinds: dict[type, int]


def body(nodes: list[Any], inputs: list[Any], outputs: list[Any], **constants: Array) -> Any:
    """The graph of a turn."""
    held = [
        helper.make_node("Constant", [], [name], value=numpy_helper.from_array(values))
        for name, values in constants.items()
    ]
    return helper.make_graph([*held, *nodes], "turn", inputs, outputs)


NUMBER, FLAG = typed("number", (), np.int64), typed("given", (), np.bool_)


def loop_of(nodes: list[Any], states: dict[str, Array], results: list[str]) -> Any:
    """A Loop of `turns` turns, whose body names the new state `new_x` and a list's item `item`."""
    ports = [typed(name, values) for name, values in states.items()]
    made = [typed(f"new_{name}", values) for name, values in states.items()]
    made += [helper.make_tensor_value_info(name, 1, None) for name in results if name == "item"]
    keep = helper.make_node("Identity", ["given"], ["flag"])
    turn = body([keep, *nodes], [NUMBER, FLAG, *ports], [typed("flag", (), np.bool_), *made])
    return helper.make_node(
        "Loop", ["turns", "", *(f"first_{name}" for name in states)], results, body=turn
    )


def exchanged() -> Case:
    """Two states that exchange their values, one of them transposed."""
    x = drawn(3, 3)
    nodes = [
        helper.make_node("Transpose", ["b"], ["new_a"], perm=[1, 0]),
        helper.make_node("Add", ["a", "b"], ["new_b"]),
    ]
    loop = loop_of(nodes, {"a": x, "b": x}, ["a_end", "b_end"])
    begin = helper.make_node("Mul", ["first_a", "half"], ["first_b"])
    constants: dict[str, Array] = {"turns": np.array(6), "half": np.array(0.5, np.float32)}
    model = model_of([begin, loop], [typed("first_a", x)], ["a_end", "b_end"], constants)
    return Case("exchanged", model, {"first_a": x}, {Repeat: 1})


def images() -> Case:
    """A convolution of images, of which only the result is transposed in each turn."""
    x, w = drawn(1, 2, 5, 4), drawn(2, 2, 3, 3) * 0.3
    nodes = [
        helper.make_node("Conv", ["a", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["x", "w"], ["d"], pads=[1, 1, 1, 1]),
        helper.make_node("Tanh", ["c"], ["t"]),
        helper.make_node("Add", ["t", "d"], ["new_a"]),
        helper.make_node("ReduceMean", ["new_a"], ["item"], keepdims=0),
    ]
    loop = loop_of(nodes, {"a": x}, ["end", "item"])
    begin = helper.make_node("Identity", ["x"], ["first_a"])
    constants = {"turns": np.array(7, np.int64), "w": w}
    model = model_of([begin, loop], [typed("x", x)], ["end", "item"], constants)
    return Case("images", model, {"x": x}, {Repeat: 1, Conv2D: 2})


def until() -> Case:
    """A condition that depends on an input begins the loop, and ends it before its most turns."""
    x = np.array([0.3], np.float32)
    nodes = [
        helper.make_node("Add", ["a", "a"], ["new_a"]),
        helper.make_node("Less", ["new_a", "limit"], ["below"]),
        helper.make_node("Squeeze", ["below"], ["flag"]),
    ]
    ports = [NUMBER, FLAG, typed("a", x)]
    results = [typed("flag", (), np.bool_), typed("new_a", x)]
    turn = body(nodes, ports, results, limit=np.array([10], np.float32))
    begin = [
        helper.make_node("Less", ["x", "ten"], ["low"]),
        helper.make_node("Squeeze", ["low"], ["begins"]),
    ]
    loop = helper.make_node("Loop", ["turns", "begins", "x"], ["y"], body=turn)
    constants = {"turns": np.array(50), "ten": np.array([10], np.float32)}
    model = model_of([*begin, loop], [typed("x", x)], ["y"], constants)
    return Case("until", model, {"x": x}, {Repeat: 1, Guard: 1})


def growing() -> Case:
    """A state that grows in each turn has another shape in each: the turns are written out."""
    x = drawn(1, 2)
    nodes = [helper.make_node("Concat", ["a", "x"], ["new_a"], axis=0)]
    ports = [NUMBER, FLAG, typed("a", ("n", 2))]
    results = [typed("flag", (), np.bool_), typed("new_a", ("m", 2))]
    keep = helper.make_node("Identity", ["given"], ["flag"])
    loop = helper.make_node(
        "Loop", ["turns", "", "x"], ["y"], body=body([keep, *nodes], ports, results)
    )
    constants = {"turns": np.array(6, np.int64)}
    model = model_of([loop], [typed("x", x)], ["y"], constants)
    return Case("growing", model, {"x": x}, {Repeat: 0})


def counting() -> Case:
    """A counter of its own ends the loop, as tf2onnx has it, and says which row a turn takes."""
    rows = drawn(9, 4)
    nodes = [
        helper.make_node("Add", ["count", "one"], ["new_count"]),
        helper.make_node("Less", ["new_count", "most"], ["flag"]),
        helper.make_node("Gather", ["rows", "count"], ["row"], axis=0),
        helper.make_node("Mul", ["a", "scale"], ["scaled"]),
        helper.make_node("Add", ["scaled", "row"], ["new_a"]),
        helper.make_node("Identity", ["new_a"], ["item"]),
    ]
    states = [typed("count", (), np.int32), typed("a", (4,)), typed("scale", (4,))]
    made = [typed("new_count", (), np.int32), typed("new_a", (4,)), typed("scale", (4,))]
    turn = body(
        nodes, [NUMBER, FLAG, *states], [typed("flag", (), np.bool_), *made, typed("item", (4,))],
        one=np.array(1, np.int32), most=np.array(9, np.int32),
    )  # fmt: skip
    loop = helper.make_node(
        "Loop", ["", "", "zero", "start", "half"], ["count_end", "end", "scale_end", "all"],
        body=turn,
    )  # fmt: skip
    last = helper.make_node("Gather", ["all", "eighth"], ["newest"], axis=0)
    constants = {
        "zero": np.array(0, np.int32), "start": drawn(4), "half": np.full(4, 0.5, np.float32),
        "eighth": np.array(8),
    }  # fmt: skip
    model = model_of([loop, last], [typed("rows", rows)], ["newest"], constants)
    # One value counts, one adds up; the list is not kept for its last item.
    return Case("counting", model, {"rows": rows}, {Repeat: 1, Guard: 0, PutItem: 0})


def scanned(axis: int, way: int) -> Case:
    """A Scan along an axis, in either direction, with a Scan in it."""
    x, turns = drawn(6, 6), 6
    inner = body(
        [
            helper.make_node("Add", ["t", "one"], ["t_new"]),
            helper.make_node("Mul", ["t_new", "cell"], ["shown"]),
        ],
        [typed("t", ()), typed("one", ())],
        [typed("t_new", ()), typed("shown", ())],
    )
    outer = body(
        [
            helper.make_node("Add", ["s", "part"], ["s_new"]),
            helper.make_node("ReduceMax", ["part"], ["cell"], keepdims=0),
            helper.make_node(
                "Scan", ["cell", "part"], ["t_end", "row"], body=inner, num_scan_inputs=1,
                scan_input_directions=[way],
            ),
        ],
        [typed("s", (turns,)), typed("part", (turns,))],
        [typed("s_new", (turns,)), typed("row", (turns,))],
    )  # fmt: skip
    node = helper.make_node(
        "Scan", ["first", "x"], ["end", "rows"], body=outer, num_scan_inputs=1,
        scan_input_axes=[axis], scan_output_axes=[1 - axis], scan_input_directions=[way],
        scan_output_directions=[1 - way],
    )  # fmt: skip
    constants = {"first": np.zeros(turns, np.float32)}
    model = model_of([node], [typed("x", x)], ["end", "rows"], constants)
    return Case(f"scanned_{axis}_{way}", model, {"x": x}, {Repeat: 2})


def layer(operator: str, gates: int, **attributes: Any) -> Case:
    """A recurrent layer of two directions and three sequences."""
    steps, n, width, size = 6, 3, 4, 5
    lengths = attributes.pop("lengths", None)
    x = drawn(steps, n, width)
    constants = {
        "w": drawn(2, gates * size, width), "r": drawn(2, gates * size, size) * 0.5,
        "b": drawn(2, 2 * gates * size),
    }  # fmt: skip
    names = ["x", "w", "r", "b", "", "h"]
    if lengths is not None:
        constants["lengths"], names[4] = np.array(lengths, np.int32), "lengths"
    if attributes.pop("peepholes", False):
        constants["p"] = drawn(2, 3 * size)
        names += ["", "p"]
    inputs = {"x": x, "h": drawn(2, n, size)}
    node = helper.make_node(
        operator, names, ["y", "y_h"], direction="bidirectional", hidden_size=size, **attributes
    )
    ports = [typed(name, values) for name, values in inputs.items()]
    model = model_of([node], ports, ["y", "y_h"], constants)
    name = "_".join([operator.lower(), *attributes, *(["lengths"] if lengths else [])])
    return Case(name, model, inputs, {Repeat: 2})


CASES = (
    exchanged(),
    images(),
    until(),
    growing(),
    counting(),
    scanned(0, 0),
    scanned(1, 1),
    layer("GRU", 3),
    layer("GRU", 3, linear_before_reset=1, lengths=(6, 2, 5)),
    layer("RNN", 1, lengths=(1, 4, 6), activations=["Relu", "Tanh"]),
    layer("LSTM", 4, peepholes=True),
    layer("LSTM", 4, clip=0.5),
)


def graph_of(model: bytes) -> Graph:
    """The graph of a file, checked."""
    graph = from_onnx(model, pass_config=REPLAY).graph
    assert graph is not None
    verify(graph)
    return graph


def test_loops_equal_onnxruntime(tmp_path: Path) -> None:
    """The graph by the reference and in C; loops are loops of the graph where they can be."""
    graphs = [graph_of(case.model) for case in CASES]
    config = CompilationConfig.from_target(Target("c"))
    artifacts = [
        build(IRModule(graph=graph), config.with_(module_name=case.name))
        for case, graph in zip(CASES, graphs, strict=True)
    ]
    models = load_batch(artifacts, tmp_path)
    for case, graph, model in zip(CASES, graphs, models, strict=True):
        found = Counter(type(node.op) for node in graph.nodes)
        assert {kind: found[kind] for kind in case.kinds} == case.kinds, case.name
        wanted = run_onnxruntime(with_inferred_outputs(case.model), case.inputs)
        for got in (execute(graph, case.inputs), model.run(case.inputs)):
            for tensor, want in zip(graph.outputs, wanted, strict=True):
                values = got[tensor.name]
                np.testing.assert_allclose(values, want, 1e-4, 1e-5, err_msg=case.name)


def test_what_no_turn_changes_is_before_the_loop() -> None:
    """A layer of an input, and the transpose of it, are computed once."""
    nodes = [type(node.op) for node in graph_of(images().model).nodes]
    inside = nodes[nodes.index(Repeat) : nodes.index(EndRepeat)]
    assert inside.count(Conv2D) == 1
    assert nodes[: nodes.index(Repeat)].count(Transpose) == 1


@pytest.mark.parametrize("operator", ["GRU", "RNN"])
def test_code_does_not_grow_with_steps(operator: str) -> None:
    """Layers over 20 and over 600 steps are as many nodes."""
    counts = []
    for steps in (20, 600):
        gates = {"GRU": 3, "RNN": 1}[operator]
        constants = {"w": drawn(1, gates * 2, 3), "r": drawn(1, gates * 2, 2)}
        node = helper.make_node(operator, ["x", "w", "r"], ["y"], hidden_size=2)
        ports = [typed("x", (steps, 1, 3))]
        counts.append(len(graph_of(model_of([node], ports, ["y"], constants)).nodes))
    assert counts[0] == counts[1]


@pytest.mark.parametrize(("target", "ulps"), [("c -mcpu=cortex-m3", 0), ("c -mcpu=cortex-m4", 1)])
def test_a_gru_runs_one_step_at_a_time(target: str, ulps: int) -> None:
    """The last of 7 runs has the bits of one run over 7 steps; where sums are fused, almost."""
    rng = np.random.default_rng(1)
    constants = {
        "w": rng.standard_normal((1, 12, 3)).astype(np.float32),
        "r": rng.standard_normal((1, 12, 4)).astype(np.float32),
        "b": rng.standard_normal((1, 24)).astype(np.float32),
    }
    node = helper.make_node(
        "GRU", ["x", "w", "r", "b"], ["y"], hidden_size=4, linear_before_reset=1
    )
    module = from_onnx(model_of([node], [typed("x", (7, 1, 3))], ["y"], constants))
    config = CompilationConfig(targets=target)
    whole, steps = (
        microtir.host.load(microtir.build(module, config.with_(stateful=one)))
        for one in (False, True)
    )
    x = rng.standard_normal((7, 1, 3)).astype(np.float32)
    runs = steps.run_sequence([{"x": x[[step]]} for step in range(7)])
    np.testing.assert_array_max_ulp(runs[-1]["y"][0], whole.run({"x": x})["y"][-1], ulps)


def test_a_list_of_unknown_length_is_refused() -> None:
    """A condition of the inputs ends the loop, and each turn adds to a list."""
    x = np.array([0.3], np.float32)
    nodes = [
        helper.make_node("Add", ["a", "a"], ["new_a"]),
        helper.make_node("Less", ["new_a", "x"], ["below"]),
        helper.make_node("Squeeze", ["below"], ["flag"]),
        helper.make_node("Identity", ["a"], ["item"]),
    ]
    results = [typed("flag", (), np.bool_), typed("new_a", x), typed("item", x)]
    turn = body(nodes, [NUMBER, FLAG, typed("a", x)], results)
    loop = helper.make_node("Loop", ["turns", "", "x"], ["y", "all"], body=turn)
    constants = {"turns": np.array(50, np.int64)}
    with pytest.raises(UnsupportedModelError, match="the condition of its loop depends"):
        from_onnx(model_of([loop], [typed("x", x)], ["y", "all"], constants))
