"""Images in bands of columns, end to end: cut, planned, placed, checked and run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import microtir
from microtir import IRModule
from microtir.config import Budget, CompilationConfig
from microtir.config.enums import Optimize
from microtir.errors import GraphError
from microtir.graph.ir import Graph
from microtir.operators.arithmetic.definition import Add
from microtir.operators.common.attributes import Padding2D
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.pooling.definition import MaxPool2D
from microtir.rewrite.reference import execute
from microtir.rewrite.variants import cut_columns
from microtir.tir.ir import PrimFunc
from microtir.tir.text import parse, to_text
from tests.driver.test_streaming import lowered, run
from tests.rewrite.test_cut_columns import random_cut
from tests.support.graphs import graph as make_graph
from tests.support.streams import Garden

M4 = CompilationConfig(targets="c -mcpu=cortex-m4")
padded = cut_columns._padded


def recomputing(percent: int, config: CompilationConfig = M4) -> CompilationConfig:
    """The configuration with work that may be done twice."""
    return config.with_(pass_config={"memory.recompute": percent})


def check_outputs(graph: Graph, module: IRModule, seed: int) -> None:
    """The lowered module computes what the graph means."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-128, 128, graph.inputs[0].shape).astype(np.int8)
    expected = execute(graph, {graph.inputs[0].name: x})
    for tensor, got in zip(graph.outputs, run(module, x), strict=True):
        np.testing.assert_array_equal(got, expected[tensor.name])


def macs_of(module: IRModule) -> tuple[int, int]:
    """Multiply-accumulates executed, and those of them that are recomputed."""
    origins = [f.origin for f in module.functions if f.origin is not None]
    return sum(o.macs_executed for o in origins), sum(o.macs_recomputed for o in origins)


@settings(deadline=None, max_examples=6)
@given(st.integers(0, 2**20), st.sampled_from(list(Optimize)))
def test_random_bands_run_to_the_bit(seed: int, goal: Optimize) -> None:
    """Wherever a graph is cut: every plan of it is checked and equal to the uncut graph."""
    graph, _, cut = random_cut(seed)
    module = lowered(cut, goal, M4)
    assert module.model is not None and module.model.memory.verified
    check_outputs(graph, module, seed)


def wide_graph(seed: int, residual: bool = False) -> Graph:
    """Three convolutions on a wide image, perhaps around an addition, and a pool."""
    garden = Garden(seed)
    height, width, channels = 8, 32, garden.pick(3, 4)
    x = garden.input = garden.tensor((1, height, width, 2))
    made = [x]
    for number in range(3):
        source = made[-1]
        w = garden.weights((channels, 3, 3, source.shape[3]), 0)
        conv = Conv2D(padding=Padding2D(1, 1, 1, 1))
        garden.add(conv, [source, w, garden.bias(channels)], (1, height, width, channels))
        made.append(garden.made[-1])
        if residual and number == 1:
            garden.add(Add(), [made[1], made[2]], made[1].shape)
            made.append(garden.made[-1])
    pool = MaxPool2D((4, 4), (4, 4))
    garden.add(pool, [made[-1]], (1, height // 4, width // 4, channels))
    return make_graph(garden.nodes, [x], [garden.made[-1]])


@pytest.mark.parametrize("residual", [False, True])
def test_recomputing_takes_less_memory_and_says_what_it_costs(residual: bool) -> None:
    """Fewer bytes than without; exactly so many MACs more as are said to be done twice."""
    graph = wide_graph(0, residual)
    plain, bands = lowered(graph, config=M4), lowered(graph, config=recomputing(100))
    assert plain.model is not None and bands.model is not None
    assert bands.model.memory.workspace_size < 0.85 * plain.model.memory.workspace_size
    check_outputs(graph, bands, seed=0)
    executed, again = macs_of(bands)
    assert again > 0
    assert macs_of(plain) == (executed - again, 0)
    assert again <= executed - again  # 100 percent


def test_the_limit_holds() -> None:
    """No plan recomputes more than the configuration allows."""
    graph = wide_graph(0)
    shares = []
    for percent in (0, 3, 60):
        executed, again = macs_of(lowered(graph, config=recomputing(percent)))
        shares.append(again / (executed - again))
        assert shares[-1] * 100 <= percent
    assert shares == sorted(shares) and shares[-1] > shares[0] == 0


def test_a_budget_of_ram_is_met_by_recomputing() -> None:
    """What no plan without it fits into is planned in bands, and a loose budget is not."""
    graph = wide_graph(1)
    plain, bands = lowered(graph, config=M4), lowered(graph, config=recomputing(100))
    assert plain.model is not None and bands.model is not None
    least, less = plain.model.memory.workspace_size, bands.model.memory.workspace_size
    for ram, is_cut in ((less, True), (2 * least, False)):
        config = recomputing(100).with_(budget=Budget(ram=ram))
        module = lowered(graph, Optimize.SPEED, config)
        assert module.model is not None and module.model.memory.workspace_size <= ram
        assert bool(macs_of(module)[1]) == is_cut


def test_cut_columns_is_verified_and_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pass runs as any other, for each way to cut: a band without its borders is found out."""
    graph, seen = wide_graph(0), list[Graph]()

    def note(given: Graph) -> Graph:
        seen.append(given)
        return given

    def lower(option: str) -> IRModule:
        config = recomputing(100).with_(optimize=Optimize.RAM_LEAST)
        config = config.with_(pass_config={"memory.recompute": 100, option: True})
        passes = microtir.ExtraPasses(after={"cut_columns": [note]})
        return microtir.lower(IRModule(graph=graph, config=config), passes=passes)

    planned = lower("tir.replay_each_pass").program
    assert planned is not None and planned.graph in seen
    assert seen[0].nodes != planned.graph.nodes and len(seen) > 1
    monkeypatch.setattr(cut_columns, "_padded", lambda op, _sides: op)
    with pytest.raises(GraphError, match="pass 'cut_columns' made an invalid graph"):
        lower("tir.verify_each_pass")
    monkeypatch.setattr(cut_columns, "_padded", lambda op, sides: padded(op, sides[::-1]))
    with pytest.raises(GraphError, match="pass 'cut_columns' changed the output"):
        lower("tir.replay_each_pass")


def test_metadata_and_comments_name_the_price() -> None:
    """Each layer says what it does a second time, and the reasons say why."""
    graph = wide_graph(0)
    config = recomputing(100).with_(optimize=Optimize.RAM_LEAST)
    artifact = microtir.build(IRModule(graph=graph, config=config))
    layers = artifact.metadata.layers
    again = sum(layer.macs_recomputed for layer in layers)
    assert again == macs_of(artifact.module)[1] > 0
    text = "".join(file.text for file in artifact.sources)
    assert "more, because bands compute the same rows" in text
    reasons = [layer.choice.reason for layer in layers if layer.choice]
    assert any("a second time" in reason for reason in reasons)


def placing(functions: tuple[PrimFunc, ...]) -> list[PrimFunc]:
    """The functions that add columns to rows which hold others."""
    return [f for f in functions if any(rows.adds for rows in f.rows.values())]


def test_text_keeps_what_a_function_leaves_of_rows() -> None:
    """A function that writes some columns of a row says so, and the text of TIR holds it."""
    config = recomputing(100, CompilationConfig(targets="c"))
    found = placing(lowered(wide_graph(0), config=config).functions)
    assert found
    (again,) = parse(to_text(found[0]))
    assert placing((again,))
