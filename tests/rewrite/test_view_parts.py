"""Parts of tensors that lie where the tensors lie, and what they must not be taken from."""

from __future__ import annotations

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Target, host
from microtir.dtype import DType
from microtir.graph.ir import Graph, Node
from microtir.module.ir_module import IRModule
from microtir.operators.activations.definition import Relu
from microtir.operators.arithmetic.definition import Add
from microtir.operators.movement.definition import (
    Concatenation,
    Pack,
    Split,
    StridedSlice,
    Unpack,
)
from microtir.rewrite.optimise import ViewParts
from microtir.rewrite.reference import execute
from microtir.rewrite.verify import verify
from tests.support.graphs import constant, graph, node, tensor

F32 = DType.FLOAT32


def names(graph_: Graph) -> list[str]:
    """The operators of a graph after the pass, which keeps what it computes."""
    after = ViewParts()(graph_)
    verify(after)
    rng = np.random.default_rng(0)
    inputs = {t.name: rng.standard_normal(t.shape).astype(np.float32) for t in graph_.inputs}
    results = execute(after, inputs)
    for name, expected in execute(graph_, inputs).items():
        assert np.array_equal(results[name], expected)
    return [node_.op.name for node_ in after.nodes]


def cut(
    op: Split | Unpack | StridedSlice, shape: tuple[int, ...], *parts: tuple[int, ...]
) -> Graph:
    """An operator on an input, each of its results behind a layer."""
    x = tensor("x", shape)
    inner = [tensor(f"p{i}", part) for i, part in enumerate(parts)]
    outer = [tensor(f"y{i}", part) for i, part in enumerate(parts)]
    layers = [node(Relu(), [p], y) for p, y in zip(inner, outer, strict=True)]
    first = Node(op, (x,), tuple(inner), "cut", layers[0].source)
    return graph([first, *layers], [x], outer)


@pytest.mark.parametrize(
    ("graph_", "views"),
    [
        (cut(Split(1), (1, 6), (1, 3), (1, 3)), ["take_rows", "take_rows"]),
        (cut(Split(0, (1, 3)), (4, 2), (1, 2), (3, 2)), ["take_rows", "take_rows"]),
        (cut(Unpack(0), (2, 3), (3,), (3,)), ["take_rows", "reshape"] * 2),
        (cut(StridedSlice((0, 2), (1, 1), (1, 3)), (1, 6), (1, 3)), ["take_rows"]),
        (cut(StridedSlice((1, 0), (1, 1), (1, 6)), (3, 6), (6,)), ["take_rows", "reshape"]),
    ],
)
def test_runs_of_memory_become_views(graph_: Graph, views: list[str]) -> None:
    """What is cut along the outermost axis is a run; axes of one element may come before it."""
    assert names(graph_)[: len(views)] == views


@pytest.mark.parametrize(
    "graph_",
    [
        cut(Split(1), (2, 6), (2, 3), (2, 3)),
        cut(Unpack(1), (3, 2), (3,), (3,)),
        cut(StridedSlice((0, 0), (1, 1), (2, 3)), (3, 6), (2, 3)),
        cut(StridedSlice((0, 5), (1, -1), (1, 6)), (1, 6), (1, 6)),
        cut(StridedSlice((0, 0), (1, 2), (1, 3)), (1, 6), (1, 3)),
    ],
)
def test_other_parts_are_copied(graph_: Graph) -> None:
    """Parts along an inner axis, every second element or the reverse are no runs."""
    assert ViewParts()(graph_) is graph_
    assert "take_rows" not in names(graph_)


def test_few_rows_do_not_keep_a_tensor() -> None:
    """The last of many steps is copied, so that the memory of the others is free; half is not."""
    for rows, views in ((1, []), (3, ["take_rows"])):
        x, y = tensor("x", (1, 6, 4)), tensor("y", (1, 6, 4))
        part, out = tensor("part", (1, rows, 4)), tensor("out", (1, rows, 4))
        cutting = node(StridedSlice((0, 6 - rows, 0), (1, 1, 1), (1, rows, 4)), [y], part)
        model = graph([node(Relu(), [x], y), cutting, node(Relu(), [part], out)], [x], [out])
        assert [name for name in names(model) if name == "take_rows"] == views


def joined(op: Concatenation | Pack, *, of_input: bool) -> Graph:
    """Two computed tensors, or an input and a computed one, joined and read by a layer."""
    x, a, b = (tensor(name, (1, 3)) for name in "xab")
    shape = (1, 6) if isinstance(op, Concatenation) else (1, 2, 3)
    whole, y = tensor("whole", shape), tensor("y", shape)
    layers = [node(Relu(), [x], a), node(Add(), [x, a], b)]
    parts = [x if of_input else a, b]
    return graph([*layers, node(op, parts, whole), node(Relu(), [whole], y)], [x], [y])


def test_results_are_written_where_they_are_joined() -> None:
    """Inputs of a join along the outermost axis are computed in the memory of its output."""
    assert names(joined(Concatenation(1), of_input=False)) == ["relu", "add", "join_rows", "relu"]
    packed = names(joined(Pack(1), of_input=False))
    assert packed == ["relu", "add", "reshape", "reshape", "join_rows", "relu"]
    assert "join_rows" not in names(joined(Concatenation(1), of_input=True))


def test_what_a_caller_gets_is_copied() -> None:
    """Outputs of the model and parts of constants have a memory of their own."""
    x, y, z = tensor("x", (1, 4)), tensor("y", (1, 2)), tensor("z", (1, 2))
    split = Node(Split(1), (x,), (y, z), "split", node(Relu(), [x], x).source)
    outputs = graph([split], [x], [y, z])
    assert ViewParts()(outputs) is outputs
    table = constant("table", np.zeros((2, 2), np.float32))
    known = graph([node(StridedSlice((1, 0), (1, 1), (1, 2)), [table], y), node(Add(), [y, z], z)],
                  [z], [y])  # fmt: skip
    assert ViewParts()(known) is known


@pytest.mark.tools
@pytest.mark.parametrize("executor", ["aot", "graph"])
def test_parts_of_an_input_are_read_from_it(executor: str) -> None:
    """No layer copies a part of what a caller gives, whoever calls the layers."""
    module = IRModule(graph=cut(Unpack(0), (3, 5), (5,), (5,), (5,)))
    config = CompilationConfig.from_target(Target("c")).with_(executor=executor)
    artifact = microtir.build(module, config)
    assert "take_rows" not in artifact.source("default.c")
    x = np.arange(-7, 8, dtype=np.float32).reshape(3, 5)
    results = host.load(artifact).run({"x": x})
    assert all(np.array_equal(results[f"y{n}"], np.maximum(x[n], 0)) for n in range(3))
