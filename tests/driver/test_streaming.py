"""Row streaming end to end: random graphs are planned, placed, checked and run."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import microtir
from microtir import IRModule
from microtir.config import CompilationConfig, host
from microtir.config.enums import Optimize
from microtir.graph.ir import Graph
from microtir.plan import grouping
from microtir.rewrite.reference import execute
from microtir.support import resources
from microtir.tir.interpreter import Interpreter
from microtir.tir.ir import Array, Buffer, For, PrimFunc
from microtir.tir.visitor import walk
from tests.support.seeds import is_soak, seeds
from tests.support.streams import Garden


def lowered(
    graph: Graph, goal: Optimize = Optimize.RAM_LEAST, config: CompilationConfig | None = None
) -> IRModule:
    """The module of a graph, lowered for a goal."""
    return microtir.lower(IRModule(graph=graph, config=(config or host()).with_(optimize=goal)))


def constant_shape(buffer: Buffer) -> tuple[int, ...]:
    """The shape of a model's buffer, which has no runtime integers in it."""
    return tuple(extent for extent in buffer.shape if isinstance(extent, int))


def run(module: IRModule, x: Array) -> list[Array]:
    """Outputs of main; nothing may be read before it was written."""
    main = module.functions[-1]
    _, *rest = (p for p in main.params if isinstance(p, Buffer))
    arrays = [np.zeros(constant_shape(p), p.dtype.value) for p in rest]
    machine = Interpreter(module.functions)
    machine.run(main.name, [x, *arrays], uninitialised=[p.name for p in rest])
    assert module.model is not None
    return arrays[: len(module.model.outputs)]


def nests(main: PrimFunc) -> int:
    """Number of loops in main."""
    return sum(isinstance(n, For) for n in walk(main))


def random_graph(seed: int, *, joins: bool = False) -> tuple[Graph, Array]:
    """A graph of some operators, and an input for it."""
    garden = Garden(seed, joins=joins)
    graph = garden.graph(int(garden.rng.integers(3, 9)))
    while not graph.nodes:
        graph = garden.graph(4)
    x = garden.rng.integers(-128, 128, graph.inputs[0].shape).astype(np.int8)
    return graph, x


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 2**20))
@example(113)  # nothing lies in the workspace
def test_random_graphs_stream_to_the_bit(seed: int) -> None:
    """Chains, branches, residuals, strides, dilations, several outputs: equal to the reference."""
    graph, x = random_graph(seed)
    module = lowered(graph)
    assert module.model is not None
    memory = module.model.memory
    assert memory.verified and memory.lower_bound <= memory.workspace_size
    expected = execute(graph, {graph.inputs[0].name: x})
    for tensor, got in zip(graph.outputs, run(module, x), strict=True):
        np.testing.assert_array_equal(got, expected[tensor.name])


@settings(deadline=None, max_examples=5)
@given(st.integers(0, 2**20), st.sampled_from(list(Optimize)))
def test_branches_that_are_joined_stream_to_the_bit(seed: int, goal: Optimize) -> None:
    """Concatenations of what branches have made, for every goal."""
    graph, x = random_graph(seed, joins=True)
    expected = execute(graph, {graph.inputs[0].name: x})
    for tensor, got in zip(graph.outputs, run(lowered(graph, goal), x), strict=True):
        np.testing.assert_array_equal(got, expected[tensor.name])


TRAITS = (
    "Conv2D", "DepthwiseConv2D", "Add", "Concatenation", "Relu", "Mean", "MaxPool2D",
    "AveragePool2D", "branch", "outputs", "strides", "dilations",
)  # fmt: skip


def test_random_graphs_have_all_of_it() -> None:
    """Of 60 graphs at least five have each kind of operator, of window and of joint."""
    seen: Counter[str] = Counter()
    for seed in range(60):
        graph, _ = random_graph(seed, joins=True)
        traits = {type(node.op).__name__ for node in graph.nodes}
        readers = Counter(t for n in graph.nodes for t in n.inputs if not t.is_constant)
        traits |= {"branch"} if max(readers.values()) > 1 else set()
        traits |= {"outputs"} if len(graph.outputs) > 1 else set()
        for node in graph.nodes:
            for trait in ("strides", "dilations"):
                if getattr(node.op, trait, (1, 1)) != (1, 1):
                    traits.add(trait)
        seen.update(traits)
    for trait in TRAITS:
        assert seen[trait] >= 5, (trait, seen)


@settings(deadline=None, max_examples=5)
@given(st.integers(0, 2**20), st.sampled_from([Optimize.RAM_LEAST, Optimize.BALANCED]))
def test_kernels_with_scratch_stream_to_the_bit(seed: int, goal: Optimize) -> None:
    """What a nest leaves of the memory goes to kernels of the CPU, which read and write rings."""
    graph, x = random_graph(seed)
    module = lowered(graph, goal, CompilationConfig(targets="c -mcpu=cortex-m4"))
    expected = execute(graph, {graph.inputs[0].name: x})
    for tensor, got in zip(graph.outputs, run(module, x), strict=True):
        np.testing.assert_array_equal(got, expected[tensor.name])


@pytest.mark.soak
@pytest.mark.parametrize("mcpu", ["cortex-m0", "cortex-m4", "cortex-m55"])
def test_two_rows_a_call_stream_to_the_bit(mcpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kernel takes them: nests that compute two rows at a time give the same bits."""
    monkeypatch.setattr(grouping, "_ways", lambda _offers: (2,))
    streamed = 0
    for seed in seeds(0, 8):
        graph, x = random_graph(seed)
        module = lowered(graph, Optimize.RAM_LEAST, CompilationConfig(targets=f"c -mcpu={mcpu}"))
        expected = execute(graph, {graph.inputs[0].name: x})
        for tensor, got in zip(graph.outputs, run(module, x), strict=True):
            np.testing.assert_array_equal(got, expected[tensor.name])
        loops = [n.var.name for n in walk(module.functions[-1]) if isinstance(n, For)]
        streamed += any(name.startswith("turn") for name in loops)
    assert streamed >= 4 or is_soak()


@pytest.mark.soak
def test_a_budget_decides_how_fast_a_plan_may_be() -> None:
    """Between the fastest plan and the smallest one, each budget is kept, and a looser one used."""
    m4 = CompilationConfig(targets="c -mcpu=cortex-m4")
    for seed in seeds(0, 3 if is_soak() else 2):
        graph, x = random_graph(seed)
        expected = execute(graph, {graph.inputs[0].name: x})
        ram, speed = (
            lowered(graph, goal, m4).model for goal in (Optimize.RAM_LEAST, Optimize.SPEED)
        )
        assert ram is not None and speed is not None
        least, most = ram.memory.workspace_size, speed.memory.workspace_size
        sizes = []
        for budget in sorted({least, (least + most) // 2, most}):
            module = lowered(graph, Optimize.SPEED, m4.with_(budget={"ram": max(budget, 1)}))
            assert module.model is not None
            sizes.append(module.model.memory.workspace_size)
            assert sizes[-1] <= budget
            for tensor, got in zip(graph.outputs, run(module, x), strict=True):
                np.testing.assert_array_equal(got, expected[tensor.name])
        assert sizes[-1] == most


def test_random_graphs_do_stream() -> None:
    """The property above is about nests: most of the graphs have one, and none takes more RAM."""
    streamed = 0
    for seed in range(6):
        graph, _ = random_graph(seed)
        ram, speed = lowered(graph), lowered(graph, Optimize.SPEED)
        assert ram.model is not None and speed.model is not None
        assert ram.model.memory.workspace_size <= speed.model.memory.workspace_size
        assert nests(speed.functions[-1]) == 0
        streamed += nests(ram.functions[-1]) > 0
    assert streamed >= 3


def run_in_workspace(module: IRModule, x: Array) -> list[Array]:
    """Outputs of main where inputs and outputs lie in the workspace."""
    main, model = module.functions[-1], module.model
    assert model is not None
    (workspace,) = main.params[len(model.ports) :]
    assert isinstance(workspace, Buffer)
    memory = np.zeros(constant_shape(workspace), np.uint8)
    (source,) = model.inputs
    assert source.offset is not None
    memory[source.offset : source.offset + x.size] = x.reshape(-1).view(np.uint8)
    unused = [np.zeros(port.type.shape, port.type.dtype.value) for port in model.ports]
    Interpreter(module.functions).run(main.name, [*unused, memory])
    assert not any(array.any() for array in unused)
    return [
        memory[port.offset : port.offset + port.type.bytes].view(np.int8).reshape(port.type.shape)
        for port in model.outputs
        if port.offset is not None
    ]


@settings(deadline=None, max_examples=6)
@given(st.integers(0, 2**20), st.sampled_from([Optimize.RAM_LEAST, Optimize.SPEED]))
@example(76391, Optimize.RAM_LEAST)  # the last call reads an output, which must outlive it
def test_inputs_and_outputs_may_lie_in_the_workspace(seed: int, goal: Optimize) -> None:
    """The same results, read from where the model says that they are."""
    graph, x = random_graph(seed)
    config = host().with_(optimize=goal)
    config = config.with_(pass_config={"memory.use_workspace_io": True})
    module = microtir.lower(IRModule(graph=graph, config=config))
    assert module.model is not None
    expected = execute(graph, {graph.inputs[0].name: x})
    for tensor, got in zip(graph.outputs, run_in_workspace(module, x), strict=True):
        np.testing.assert_array_equal(got, expected[tensor.name])


def test_the_c_says_what_its_loops_are_for() -> None:
    """Before the loops of several operators stands which they are; inner loops say nothing."""
    model = microtir.frontend.from_tflite(resources.example("digits/digits_int8.tflite"))
    streamed, plain = (
        microtir.build(model, host().with_(optimize=goal, module_name="net")).source("net.c")
        for goal in (Optimize.RAM_LEAST, Optimize.SPEED)
    )
    lines = streamed.splitlines()
    (place,) = [n for n, line in enumerate(lines) if "row by row" in line]
    found = re.fullmatch(r"    /\* Operators 0 to (\d+) row by row: [a-z ]+\.", lines[place])
    assert found is not None
    assert "slot r % R" in lines[place + 1]
    assert lines[place + 2] == "     */"
    # A loop counts the rows of the operator that has its number.
    assert lines[place + 3].startswith(f"    for (int32_t row{found[1]} = 0;")
    assert "row by row" not in plain
