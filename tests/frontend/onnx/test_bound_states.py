"""Inputs that keep what outputs were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

import microtir
from microtir import host
from microtir.config import CompilationConfig
from microtir.config.states import states
from microtir.errors import ConfigError
from microtir.frontend import from_onnx
from microtir.module.ir_module import IRModule
from microtir.operators.indexing.definition import PutSlice
from tests.support.onnx_models import Array, model_of, typed

pytestmark = pytest.mark.tools

FLOATS = np.zeros((1, 3), np.float32)


def summing() -> IRModule:
    """Two sums of what x was, and a count of runs; y is both together."""
    nodes = [
        helper.make_node("Add", ["kept.a", "x"], ["left.a"]),
        helper.make_node("Sub", ["kept.b", "x"], ["left.b"]),
        helper.make_node("Mul", ["left.a", "left.b"], ["y"]),
    ]
    inputs = [typed(name, FLOATS) for name in ("x", "kept.a", "kept.b")]
    return from_onnx(model_of(nodes, inputs, ["y", "left.a", "left.b"]))


def config(text: str, **more: Any) -> CompilationConfig:
    """Return a configuration that keeps inputs."""
    return CompilationConfig(targets="c -mcpu=cortex-m4", states=text, **more)


@pytest.mark.parametrize("text", ["kept.a=left.a, kept.b=left.b", "kept.*=left.*"])
def test_inputs_keep_what_outputs_were(text: str) -> None:
    """They begin with zeros, callers have neither, and a reset begins again."""
    model = host.load(microtir.build(summing(), config(text)), sanitize=True)
    assert [tensor.name for tensor in model.inputs] == ["x"]
    assert [tensor.name for tensor in model.outputs] == ["y"]
    x = np.array([[1, 2, 3]], np.float32)
    for _ in range(2):
        for run in (1, 2, 3):
            np.testing.assert_array_equal(model.run({"x": x})["y"], -((run * x) ** 2))
        model.reset()


def test_one_may_be_kept_and_another_not() -> None:
    """What no pair names is given and taken as before."""
    model = host.load(microtir.build(summing(), config("kept.b=left.b")))
    assert [tensor.name for tensor in model.inputs] == ["x", "kept.a"]
    assert [tensor.name for tensor in model.outputs] == ["y", "left.a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kept=left.a", "no input is called 'kept'"),
        ("keep.*=left.*", r"no input is called 'keep\.\*'"),
        ("kept.*=new.*", r"no output is called 'new\.a'"),
        ("kept.a=y,kept.b=y", "in several pairs"),
        ("kept.a=left.a,kept.a=y", "in several pairs"),
        ("kept.a=left.a,kept.b=left.b,x=y", "no result is left"),
    ],
)
def test_pairs_that_are_refused(text: str, message: str) -> None:
    """Each names what is not there, or does not go together."""
    with pytest.raises(ConfigError, match=message) as caught:
        microtir.build(summing(), config(text))
    assert caught.value.where == "states"


def test_pairs_have_one_type() -> None:
    """A cache that grows is no state."""
    nodes = [helper.make_node("Concat", ["past", "x"], ["present"], axis=0)]
    nodes += [helper.make_node("Neg", ["x"], ["y"])]
    module = from_onnx(model_of(nodes, [typed("past", FLOATS), typed("x", FLOATS)],
                                ["y", "present"]))  # fmt: skip
    with pytest.raises(ConfigError, match=r"float32 \(1, 3\), but 'present' is float32 \(2"):
        microtir.build(module, config("past=present"))


@pytest.mark.parametrize(
    ("text", "names", "bound"),
    [
        ("", ("a",), []),
        ("a=b", ("a", "aa"), [("a", "b")]),
        ("p.*.k=n.*.k", ("p.0.k", "p.1.k", "p.0.v"), [("p.0.k", "n.0.k"), ("p.1.k", "n.1.k")]),
        ("*.in=out.*", ("x.in",), [("x.in", "out.x")]),
    ],
)
def test_a_star_stands_for_the_same_text(
    text: str, names: tuple[str, ...], bound: list[tuple[str, str]]
) -> None:
    """Of names in numbered layers, one pair means all."""
    assert [found for pair in states(text) for found in pair.bound(names)] == bound


def cache(mode: str) -> IRModule:
    """A cache of four rows, of which a run writes one; y is the sum of all."""
    nodes = [
        helper.make_node("TensorScatter", ["past", "x", "at"], ["new"], axis=1, mode=mode),
        helper.make_node("ReduceSum", ["new", "axes"], ["y"], keepdims=0),
    ]
    cached, row = np.zeros((1, 4, 3), np.float32), np.zeros((1, 1, 3), np.float32)
    inputs = [typed("past", cached), typed("x", row), typed("at", np.zeros(1, np.int64))]
    constants = {"axes": np.array([1], np.int64)}
    return from_onnx(model_of(nodes, inputs, ["y", "new"], constants, opset=24))


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("executor", ["aot", "graph"])
def test_a_row_of_a_cache_is_written_where_it_stays(mode: str, executor: str) -> None:
    """Nothing else of the cache is touched, and the workspace holds no copy of it."""
    replay = {"tir.replay_each_pass": True}
    asked = config("past=new", executor=executor, pass_config=replay)
    lowered = microtir.lower(cache(mode).with_configuration(asked))
    assert lowered.program is not None
    ops = [type(node.op) for node in lowered.program.graph.nodes]
    assert ops.count(PutSlice) == 1
    artifact = microtir.build(cache(mode), asked)
    assert artifact.metadata.memory is not None
    assert artifact.metadata.memory.workspace_size <= 32
    model = host.load(artifact, sanitize=True)
    rows = np.zeros((1, 4, 3), np.float32)
    generator = np.random.default_rng(0)
    for run in range(6):
        x = generator.normal(size=(1, 1, 3)).astype(np.float32)
        rows[:, run % 4 if mode == "circular" else min(run, 3)] = x[:, 0]
        got = model.run({"x": x, "at": np.array([run], np.int64)})["y"]
        np.testing.assert_allclose(got, rows.sum(axis=1), rtol=1e-6, atol=1e-6)


def test_a_cache_of_the_caller_is_copied() -> None:
    """What comes in is not changed where it is not kept."""
    model = host.load(microtir.build(cache("linear"), config("")), sanitize=True)
    past = np.ones((1, 4, 3), np.float32)
    inputs: dict[str, Array] = {"past": past, "x": past[:, :1] * 5, "at": np.array([2], np.int64)}
    got = model.run(inputs)
    np.testing.assert_array_equal(got["new"][0, :, 0], [1, 1, 5, 1])
    np.testing.assert_array_equal(past, 1)
