"""Loops whose turns compute the cell of an LSTM become LSTMs; all others stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

import microtir
from microtir.config import CompilationConfig
from microtir.dtype import DType
from microtir.graph.ir import Array, Graph, Node, SourceLocation, Tensor
from microtir.graph.operator import Operator
from microtir.graph.rewriting import Keeps
from microtir.host import load
from microtir.operators.activations.definition import Logistic, Relu, Tanh
from microtir.operators.arithmetic.definition import Add, Mul
from microtir.operators.control.definition import EndRepeat, PutItem, Repeat
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.indexing.definition import Gather
from microtir.operators.movement.definition import Concatenation, Reshape, Split, StridedSlice
from microtir.operators.recurrent.definition import Lstm
from microtir.operators.state.definition import Assign
from microtir.rewrite.checked import check_meaning
from microtir.rewrite.optimise import FuseLstmLoops, RemoveDeadNodes
from microtir.rewrite.reference import execute
from microtir.rewrite.verify import verify
from tests.support.graphs import constant, graph, node, per_channel, tensor
from tests.support.small_models import module_of

STEPS, INPUTS, UNITS = 5, 3, 4
SOURCE = SourceLocation("model", 0, "WHILE")


@dataclass(frozen=True)
class Written:
    """How a loop is written.

    Args:
        batch: sequences.
        product: "two" layers, "joined": of both vectors beside each other, "gates": one each.
        parts: "split", or "slices".
        turned: whether operands come in the other order.
        weights: of the hidden state: "float32", "int8", or "channels": int8 with many scales.
        results: what is used behind the loop.
        show: what bends the output gate.
        step: of the counter.
        begin: of the counter.
        first: of the cells.
    """

    batch: int = 1
    product: str = "two"
    parts: str = "split"
    turned: bool = False
    weights: str = "float32"
    results: tuple[str, ...] = ("list",)
    show: Operator = Logistic()
    step: int = 1
    begin: int = 0
    first: float = 0.0
    steps: int = STEPS


class Body:
    """The nodes of a graph with a loop, in the making."""

    def __init__(self, written: Written) -> None:
        self.written, self.nodes = written, list[Node]()
        self.rng = np.random.default_rng(7)

    def put(self, op: Operator, inputs: Sequence[Tensor], *shape: int, name: str = "") -> Tensor:
        output = tensor(name or f"t{len(self.nodes)}", shape)
        self.nodes.append(node(op, inputs, output))
        return output

    def both(self, op: Operator, first: Tensor, second: Tensor, *shape: int) -> Tensor:
        """Return a result of two operands, in the order that is asked for."""
        pair = (second, first) if self.written.turned else (first, second)
        return self.put(op, pair, *shape)

    def matrix(self, rows: int, columns: int, kind: str = "float32") -> Tensor:
        name = f"w{len(self.nodes)}"
        if kind == "float32":
            data: Array = self.rng.standard_normal((rows, columns)).astype(np.float32)
            return constant(name, data)
        stored: Array = self.rng.integers(-99, 99, (rows, columns)).astype(np.int8)
        scales = self.rng.uniform(0.005, 0.02, rows if kind == "channels" else 1)
        rounded = scales.astype(np.float32).tolist()
        made = per_channel(rounded, 0)
        if kind == "int8":
            made = replace(made, axis=None)
        return constant(name, stored, made)

    def bias(self, count: int) -> Tensor:
        return constant(f"b{len(self.nodes)}", self.rng.standard_normal(count).astype(np.float32))

    def sums(self, x: Tensor, hidden: Tensor, count: int) -> Tensor:
        """Return the sums of so many rows."""
        w, shape = self.written, (self.written.batch, count)
        if w.product == "joined":
            both = self.put(Concatenation(1), (x, hidden), w.batch, INPUTS + UNITS)
            weights = self.matrix(count, INPUTS + UNITS, w.weights)
            return self.put(FullyConnected(), (both, weights, self.bias(count)), *shape)
        of_x = self.put(FullyConnected(), (x, self.matrix(count, INPUTS)), *shape)
        of_hidden = self.put(
            FullyConnected(), (hidden, self.matrix(count, UNITS, w.weights)), *shape
        )
        total = self.both(Add(), of_x, of_hidden, *shape)
        return self.both(Add(), total, self.bias(count), *shape)

    def gates(self, x: Tensor, hidden: Tensor) -> list[Tensor]:
        """Return the arguments of four gates."""
        w, shape = self.written, (self.written.batch, UNITS)
        if w.product == "gates":
            return [self.sums(x, hidden, UNITS) for _ in range(4)]
        total = self.sums(x, hidden, 4 * UNITS)
        if w.parts == "slices":
            return [
                self.put(StridedSlice((0, n * UNITS), (1, 1), shape), (total,), *shape)
                for n in range(4)
            ]
        parts = [tensor(f"part{n}", shape) for n in range(4)]
        self.nodes.append(Node(Split(1), (total,), tuple(parts), "split", SOURCE))
        return parts


def loop(w: Written) -> Graph:
    """A graph whose loop computes an LSTM as exporters write it."""
    body, shape = Body(w), (w.batch, UNITS)
    x = tensor("x", (w.steps, w.batch, INPUTS))
    number = constant("begin", np.array(w.begin, np.int32))
    zeros = constant("zeros", np.zeros((STEPS, *shape), np.float32))
    firsts = [
        number, zeros, constant("none", np.zeros(shape, np.float32)),
        constant("first", np.full(shape, w.first, np.float32)),
    ]  # fmt: skip
    names = ("count", "list", "hidden", "cell")
    begins = [Tensor(f"{n}_first", t.type) for n, t in zip(names, firsts, strict=True)]
    turns, news, ends = (
        [Tensor(f"{n}_{part}", t.type) for n, t in zip(names, firsts, strict=True)]
        for part in ("turn", "new", "end")
    )
    for source, begin in zip(firsts, begins, strict=True):
        body.nodes.append(node(Assign(), (source,), begin))
    body.nodes.append(Node(Repeat(STEPS), tuple(begins), tuple(turns), "repeat", SOURCE))
    count, items, hidden, cell = turns
    one = constant("one", np.array(w.step, np.int32))
    following = Tensor("following", count.type)
    body.nodes.append(node(Add(), (count, one), following))
    step = body.put(Gather(), (x, count), w.batch, INPUTS)
    add, keep, new, show = body.gates(step, hidden)
    kept = body.both(Mul(), body.put(Logistic(), (keep,), *shape), cell, *shape)
    bent = body.put(Tanh(), (new,), *shape)
    added = body.both(Mul(), body.put(Logistic(), (add,), *shape), bent, *shape)
    new_cell = body.both(Add(), kept, added, *shape)
    shown = body.put(w.show, (show,), *shape)
    new_hidden = body.both(Mul(), shown, body.put(Tanh(), (new_cell,), *shape), *shape)
    item = body.put(Reshape(), (new_hidden,), 1, *shape)
    body.nodes.append(node(Assign(), (following,), news[0]))
    body.nodes.append(node(PutItem(), (items, item, count), news[1]))
    body.nodes.append(node(Assign(), (new_hidden,), news[2]))
    body.nodes.append(node(Assign(), (new_cell,), news[3]))
    body.nodes.append(Node(EndRepeat(), (*turns, *news), tuple(ends), "end", SOURCE))
    by_name = dict(zip(names, ends, strict=True))
    results = []
    for name in w.results:
        result = Tensor(f"y_{name}", by_name[name].type)
        body.nodes.append(node(Reshape(), (by_name[name],), result))
        results.append(result)
    return graph(body.nodes, [x], results)


def fused(model: Graph) -> Graph:
    """The graph after the pass: well formed, and of the same meaning."""
    verify(model)
    made = FuseLstmLoops()(model)
    verify(made)
    check_meaning(model, made, "test", Keeps.SUMS)
    return made


def has_lstm(model: Graph) -> bool:
    """Whether a graph has an LSTM and no loop."""
    kinds = {type(n.op) for n in model.nodes}
    return Lstm in kinds and Repeat not in kinds


FUSED = {
    "as Keras writes it": Written(),
    "several sequences": Written(batch=2),
    "operands in the other order": Written(turned=True),
    "one product of both vectors": Written(product="joined"),
    "a product for each gate": Written(product="gates"),
    "slices": Written(parts="slices"),
    "int8 weights": Written(weights="int8"),
    "int8 weights, one scale for each row": Written(weights="channels"),
    "int8 weights for both": Written(weights="channels", product="joined"),
    "the last state": Written(results=("hidden",)),
    "both states": Written(results=("hidden", "cell")),
    "all": Written(results=("list", "hidden", "cell"), batch=2),
    "cells that begin with a number": Written(first=0.5, results=("cell",)),
}
KEPT = {
    "another gate": Written(show=Relu()),
    "every other step": Written(step=2, steps=2 * STEPS),
    "another first step": Written(begin=1, steps=STEPS + 1),
    "a longer sequence": Written(steps=STEPS + 1),
    "the counter": Written(results=("count",)),
}


@pytest.mark.parametrize("case", FUSED)
def test_cells_become_layers(case: str) -> None:
    """However their sums are written, and whatever of them is used."""
    made = fused(loop(FUSED[case]))
    assert has_lstm(made)
    (layer,) = (n for n in made.nodes if isinstance(n.op, Lstm))
    assert layer.op == Lstm(time_major=True, last_only="list" not in FUSED[case].results)


@pytest.mark.parametrize("case", KEPT)
def test_others_stay(case: str) -> None:
    """What is no LSTM, or gives what an LSTM does not."""
    model = loop(KEPT[case])
    assert FuseLstmLoops()(model) is model


def test_a_deep_sum_is_left_alone() -> None:
    """A chain of sums that no exporter writes ends the search."""
    model = loop(Written())
    total = next(n for n in model.nodes if isinstance(n.op, Split))
    place, last = model.nodes.index(total), total.inputs[0]
    nodes = []
    for number in range(2000):
        output = Tensor(f"deep{number}", last.type)
        nodes.append(node(Add(), (last, constant(f"z{number}", np.zeros(16, np.float32))), output))
        last = output
    changed = [*model.nodes[:place], *nodes, replace(total, inputs=(last,))]
    deep = replace(model, nodes=(*changed, *model.nodes[place + 1 :]))
    assert FuseLstmLoops()(deep) is deep


@pytest.mark.tools
@pytest.mark.parametrize("case", ["all", "int8 weights, one scale for each row", "both states"])
@pytest.mark.parametrize("target", ["c", "c -mcpu=cortex-m4"])
def test_c_computes_what_the_loop_does(case: str, target: str) -> None:
    """The C is that of an LSTM, from its own states on."""
    model = RemoveDeadNodes()(loop(FUSED[case]))
    artifact = microtir.build(module_of(model), CompilationConfig(targets=target, optimize="speed"))
    program = artifact.module.require_program("test")
    assert has_lstm(program.plan.graph)
    x = np.random.default_rng(3).standard_normal(model.arguments[0].shape).astype(np.float32)
    wanted, got = execute(model, {"x": x}), load(artifact).run({"x": x})
    for name, values in wanted.items():
        np.testing.assert_allclose(got[name], values, rtol=0, atol=2e-6 * np.abs(values).max())
    assert DType.FLOAT32 in {t.dtype for t in model.outputs}
