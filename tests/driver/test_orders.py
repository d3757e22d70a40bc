"""Operators in another order than the file's, end to end: planned, placed, checked and run."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import microtir
from microtir import IRModule, host
from microtir.config import Budget, CompilationConfig, Executor
from microtir.config.enums import Optimize
from microtir.errors import MemoryPlanError
from microtir.graph.ir import Array, Graph, Node, Tensor
from microtir.graph.operator import Operator
from microtir.host.layers import first_wrong_layer
from microtir.host.samples import SampleBatch
from microtir.host.tolerance import RelativeTolerance
from microtir.operators.arithmetic.definition import Add
from microtir.operators.common.attributes import Padding2D
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.rewrite.reference import execute
from microtir.tir.text import to_text
from tests.driver.test_streaming import random_graph, run
from tests.support.graphs import graph as make_graph
from tests.support.streams import Garden

M4 = CompilationConfig(targets="c -mcpu=cortex-m4")
FILE_ORDER = {"memory.reorder": False}


def in_random_order(graph: Graph, seed: int) -> Graph:
    """The graph as a file could have it, too."""
    rng, left, nodes = random.Random(seed), list(graph.nodes), list[Node]()
    made = set(graph.inputs)
    while left:
        able = [n for n in left if all(t.is_constant or t in made for t in n.inputs)]
        nodes.append(able[rng.randrange(len(able))])
        left.remove(nodes[-1])
        made.update(nodes[-1].outputs)
    return make_graph(nodes, graph.inputs, graph.outputs)


def summed(garden: Garden, heads: list[Tensor]) -> Tensor:
    """The sum of several tensors, two at a time."""
    total = heads[0]
    for head in heads[1:]:
        garden.add(Add(), [total, head], head.shape)
        total = garden.made[-1]
    return total


def dense_branches(count: int) -> Graph:
    """Branches that widen a vector of 8 to 256 and narrow it again, level by level."""
    garden = Garden(3)
    x = garden.tensor((1, 8))
    heads = [x] * count
    for width in (256, 8):
        for number, head in enumerate(heads):
            weights = garden.weights((width, head.shape[1]), 0)
            garden.add(FullyConnected(), [head, weights, garden.bias(width)], (1, width))
            heads[number] = garden.made[-1]
    return make_graph(garden.nodes, [x], [summed(garden, heads)])


def cells(branches: int = 4, count: int = 2, side: int = 8) -> Graph:
    """Cells of inverted bottlenecks side by side, level by level, and a sum behind each."""
    garden = Garden(3)
    x = garden.tensor((1, side, side, 8))
    out = x
    for _ in range(count):
        heads = [out] * branches
        for level in range(3):
            for number, head in enumerate(heads):
                heads[number] = bottleneck_layer(garden, head, level, 8 * (number + 2))
        out = summed(garden, heads)
    return make_graph(garden.nodes, [x], [out])


def bottleneck_layer(garden: Garden, x: Tensor, level: int, width: int) -> Tensor:
    """The first, second or last layer of an inverted bottleneck of so many channels."""
    *image, channels = x.shape
    if level == 1:
        op: Operator = DepthwiseConv2D(padding=Padding2D(1, 1, 1, 1))
        weights, made = garden.weights((1, 3, 3, channels), 3), channels
    else:
        made = 8 if level == 2 else width
        op, weights = Conv2D(), garden.weights((made, 1, 1, channels), 0)
    garden.add(op, [x, weights, garden.bias(made)], (*image, made))
    return garden.made[-1]


def lowered(graph: Graph, config: CompilationConfig) -> IRModule:
    """The module of a graph, lowered."""
    return microtir.lower(IRModule(graph=graph, config=config))


def workspace(module: IRModule) -> int:
    """Bytes, of a placement that the checker has proven."""
    assert module.model is not None and module.model.memory.verified
    return module.model.memory.workspace_size


def instructions(module: IRModule) -> int:
    """Estimated, of all layers."""
    assert module.model is not None
    return sum(d.instructions for d in module.model.decisions.values())


def some_input(graph: Graph, seed: int = 0) -> Array:
    """Random bytes for the graph's input."""
    rng = np.random.default_rng(seed)
    return rng.integers(-128, 128, graph.inputs[0].shape).astype(np.int8)


def check_outputs(graph: Graph, module: IRModule, x: Array) -> None:
    """Main computes what the graph means, in the order that the file has."""
    expected = execute(graph, {graph.inputs[0].name: x})
    for tensor, got in zip(graph.outputs, run(module, x), strict=True):
        np.testing.assert_array_equal(got, expected[tensor.name])


@pytest.mark.parametrize("goal", [Optimize.SPEED, Optimize.FLASH])
def test_the_peak_of_the_file_is_twice_the_best(goal: Optimize) -> None:
    """Branch after branch instead of level after level, where each layer is one call."""
    graph, config = dense_branches(2), M4.with_(optimize=goal)
    best, file = lowered(graph, config), lowered(graph, config.with_(pass_config=FILE_ORDER))
    assert workspace(file) >= 1.9 * workspace(best)
    for module in (best, file):
        check_outputs(graph, module, some_input(graph))


def test_a_layer_keeps_its_number() -> None:
    """Layers run in another order and are called what they are called in the file."""
    speed = M4.with_(optimize="speed")
    module = lowered(dense_branches(2), speed)
    layers = [f for f in module.functions if f.origin is not None]
    assert [f.origin.index for f in layers if f.origin] == [0, 2, 1, 3, 4]
    kept = lowered(dense_branches(2), speed.with_(pass_config=FILE_ORDER))
    assert {f.name for f in layers} == {f.name for f in kept.functions if f.origin is not None}


@pytest.mark.parametrize("goal", [Optimize.SPEED, Optimize.BALANCED])
def test_a_budget_that_only_another_order_meets(goal: Optimize) -> None:
    """The order is one of the ways to keep to a budget of RAM."""
    graph = dense_branches(4)
    config = M4.with_(optimize=goal, budget=Budget(ram=280))
    assert workspace(lowered(graph, config)) <= 280
    with pytest.raises(MemoryPlanError, match=r"budget\.ram"):
        lowered(graph, config.with_(pass_config=FILE_ORDER))


@pytest.mark.parametrize(("goal", "part"), [(Optimize.SPEED, 0.6), (Optimize.RAM_LEAST, 0.9)])
def test_images_in_branches(goal: Optimize, part: float) -> None:
    """Whole tensors or streamed: so much of the memory, no more instructions, the same outputs."""
    graph, config = cells(3, 1), M4.with_(optimize=goal)
    best, file = lowered(graph, config), lowered(graph, config.with_(pass_config=FILE_ORDER))
    assert workspace(best) <= part * workspace(file)
    assert instructions(best) <= instructions(file)
    check_outputs(graph, best, some_input(graph))


@settings(deadline=None, max_examples=5)
@given(st.integers(0, 2**20), st.sampled_from(list(Optimize)), st.booleans())
def test_random_orders_run_to_the_bit(seed: int, goal: Optimize, workspace_io: bool) -> None:
    """Whatever order a file has: its outputs stay, in a placement that the checker has proven."""
    grown, x = random_graph(seed, joins=True)
    graph = in_random_order(grown, seed)
    io = {"memory.use_workspace_io": workspace_io}
    module = lowered(graph, M4.with_(optimize=goal, pass_config=io))
    workspace(module)
    if not workspace_io:
        check_outputs(graph, module, x)


def test_ram_is_never_more_than_in_the_order_of_the_file() -> None:
    """Among plans for the least memory, those of other orders only come on top."""
    gains = 0
    for seed in (3, 8, 15, 21):
        graph = in_random_order(random_graph(seed, joins=True)[0], seed)
        config = M4.with_(optimize="ram-least")
        best, file = lowered(graph, config), lowered(graph, config.with_(pass_config=FILE_ORDER))
        assert workspace(best) <= workspace(file), seed
        gains += workspace(best) < workspace(file)
    assert gains >= 2


def test_what_gains_nothing_stays_in_order() -> None:
    """A chain with a residual is printed as before."""
    garden = Garden(1)
    x = garden.tensor((1, 8, 8, 4))
    head = x
    for level in (0, 1, 2):
        head = bottleneck_layer(garden, head, level, 16)
    wide = bottleneck_layer(garden, x, 2, 8)
    graph = make_graph(garden.nodes, [x], [summed(garden, [head, wide])])
    for goal in (Optimize.SPEED, Optimize.RAM_LEAST):
        config = M4.with_(optimize=goal)
        module, kept = lowered(graph, config), lowered(graph, config.with_(pass_config=FILE_ORDER))
        assert to_text(module.functions) == to_text(kept.functions)


@pytest.mark.parametrize("executor", ["aot", "graph", "debug"])
def test_executors_and_layers(executor: str) -> None:
    """Compiled for this machine, every executor gives the same bits, and every layer its own."""
    graph = dense_branches(3)
    config = CompilationConfig(targets="c", executor=executor)
    artifact = microtir.build(IRModule(graph=graph, config=config))
    planned = artifact.module.require_program("test").graph
    assert [n.source.index for n in planned.nodes] != list(range(len(graph.nodes)))
    x = some_input(graph)
    inputs = {graph.inputs[0].name: x}
    expected = execute(graph, inputs)[graph.outputs[0].name]
    (got,) = host.load(artifact).run(inputs).values()
    np.testing.assert_array_equal(got, expected)
    if executor == "aot":
        model = host.load(artifact, debug=True)
        samples = SampleBatch((inputs,))
        assert first_wrong_layer(model, planned, samples, {0}, RelativeTolerance(0.0)) is None


def test_rows_that_come_and_go() -> None:
    """Inputs that are fed and outputs that are drained by rows take part in the order."""
    config = CompilationConfig(
        targets="c",
        executor=Executor("aot", {"row-fed-inputs": True, "row-drained-outputs": True}),
    )
    module = lowered(cells(3, 1), config)
    kept = lowered(cells(3, 1), config.with_(pass_config=FILE_ORDER))
    assert workspace(module) < workspace(kept)
