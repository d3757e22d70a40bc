"""Budgets and pool sizes: what fits is built, one byte less is refused with names and numbers."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

import microtir
from microtir import IRModule, te
from microtir.artifact import Artifact
from microtir.codegen import measured
from microtir.config import Budget, CompilationConfig, WorkspacePoolInfo
from microtir.dtype import DType
from microtir.errors import ExitCode, MemoryPlanError
from microtir.graph.ir import Graph
from microtir.operators.common.attributes import Padding2D
from microtir.operators.conversion.definition import Quantize
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.movement.definition import Concatenation
from tests.support.graphs import constant, graph, node, quant, tensor
from tests.support.program_text import program_text
from tests.support.small_models import mixed_graph, module_of, tiny_graph

BASE = CompilationConfig(targets="c")


def macro(artifact: Artifact, name: str) -> int:
    """Return an integer macro of the generated header."""
    match = re.search(rf"#define DEFAULT_{name}\s+(\d+)", artifact.source("default.h"))
    assert match is not None
    return int(match[1])


def refusal(model: Graph, config: CompilationConfig) -> MemoryPlanError:
    """Return the diagnostic of a build that exceeds a limit."""
    with pytest.raises(MemoryPlanError) as caught:
        microtir.build(module_of(model), config)
    assert caught.value.exit_code is ExitCode.ANSWER_IS_NO
    return caught.value


def limited(kind: str, size: int) -> CompilationConfig:
    """Return a configuration with room for a workspace of `size` bytes."""
    if kind == "budget.ram":
        return BASE.with_(budget=Budget(ram=size))
    pool = WorkspacePoolInfo("dtcm-2", (), {"size_hint_bytes": size})
    return BASE.with_(workspace_pools=[pool])


@pytest.mark.parametrize(
    ("field", "holder"),
    [("budget.ram", "the budget"), ("workspace_pools.size_hint_bytes", "the pool 'dtcm-2'")],
)
def test_the_workspace_fits_to_the_byte_or_is_refused(field: str, holder: str) -> None:
    """The size in the header is accepted as a limit, one byte less names layer and buffers."""
    model = mixed_graph()
    size = macro(microtir.build(module_of(model), BASE), "WORKSPACE_SIZE")
    fits = microtir.build(module_of(model), limited(field, size))
    assert macro(fits, "WORKSPACE_SIZE") == size
    error = refusal(model, limited(field, size - 3))
    assert error.where == field
    assert error.what == f"the workspace takes {size} bytes, 3 more than {holder} has"
    assert error.legal is not None and f"{size} bytes or more" in error.legal
    assert error.fix is not None
    assert "the memory that SOFTMAX 'c_node' needs" in error.fix
    assert "activation_1: 28 bytes from DEQUANTIZE 'b_node'" in error.fix
    assert "activation_2: 28 bytes from SOFTMAX 'c_node'" in error.fix


def test_a_limit_changes_no_code() -> None:
    """A program that fits is the one that is built without a limit."""
    model = module_of(layered_graph())
    plain = microtir.build(model, BASE)
    bounded = microtir.build(
        model, BASE.with_(budget=Budget(ram=10_000, flash=100_000, stack=10_000))
    )
    assert program_text(bounded) == program_text(plain)


def test_the_smallest_program_fits_to_the_byte_or_is_refused() -> None:
    """Flash is weights and estimated code; the message names both and the largest arrays."""
    model = tiny_graph()
    flash = measured(microtir.lower(module_of(model).with_configuration(BASE))).flash
    least = measured(smallest(model)).flash.bytes
    microtir.build(module_of(model), BASE.with_(budget=Budget(flash=least)))
    assert least <= flash.bytes
    error = refusal(model, BASE.with_(budget=Budget(flash=least - 1)))
    assert error.where == "budget.flash"
    assert (
        f"takes about {least} bytes of flash, 1 more than the budget. The weights take "
        in error.what
    )
    assert error.fix is not None
    assert "layer0_table: 256 bytes for layer0_tanh" in error.fix


@pytest.mark.parametrize("percent", [40, 160])
def test_a_compiler_decides_on_flash(percent: int) -> None:
    """What fits by the compiler is taken, however wrong the estimate is, and nothing else."""
    fast = BASE.with_(targets="c -mcpu=cortex-m4", optimize="speed")
    model, asked = layered_graph(), list[Artifact]()

    def compiler(artifact: Artifact) -> int:
        asked.append(artifact)
        return artifact.flash().code * percent // 100

    def real(artifact: Artifact) -> int:
        return artifact.flash(compiler(artifact)).bytes

    sizes = {
        goal: real(microtir.build(module_of(model), fast.with_(optimize=goal)))
        for goal in ("speed", "flash")
    }
    # What was measured of one program is expected of others: roundings need some bytes.
    enough = sizes["speed"] * 101 // 100
    for size in (enough, (sizes["speed"] + sizes["flash"]) // 2):
        asked.clear()
        config = fast.with_(budget=Budget(flash=size))
        built = microtir.build(module_of(model), config, compiler=compiler)
        # The search asks about four programs at most, and the last word is about the one it gives.
        assert len(asked) <= 5
        assert real(built) <= size
        if size == enough:
            assert real(built) == sizes["speed"]
    tight = fast.with_(budget=Budget(flash=sizes["flash"] - 1))
    with pytest.raises(MemoryPlanError, match="measured with the board's compiler"):
        microtir.build(module_of(model), tight, compiler=compiler)


def test_the_nearest_program_is_given_on_demand() -> None:
    """Instead of a refusal: what exceeds the budget least, which is what the refusal tells of."""
    model, config = mixed_graph(), BASE.with_(budget=Budget(ram=10))
    size = macro(microtir.build(module_of(model), config, best_effort=True), "WORKSPACE_SIZE")
    least = macro(
        microtir.build(module_of(model), BASE.with_(optimize="ram-least")), "WORKSPACE_SIZE"
    )
    assert size == least
    assert f"takes {size} bytes, {size - 10} more" in refusal(model, config).what


def test_a_stack_that_no_kernel_keeps_to_is_refused_by_its_calls() -> None:
    """Kernels that only some layouts can have are no way out of a budget that none keeps to."""
    config = BASE.with_(targets="c -mcpu=cortex-m4", budget=Budget(stack=8))
    assert refusal(layered_graph(), config).where == "budget.stack"


def smallest(model: Graph) -> IRModule:
    """Return the module of a graph where flash is all that counts."""
    return microtir.lower(module_of(model).with_configuration(BASE.with_(optimize="flash")))


def test_weights_that_two_layers_share_count_once() -> None:
    """The budget counts the arrays that are emitted, not those that the layers ask for."""
    x, a, y = (tensor(name, (1, 6), DType.INT8, quant(0.1)) for name in ("x", "a", "y"))
    weights = constant("weights", np.arange(36, dtype=np.int8).reshape(6, 6), quant(0.02))
    layers = [
        node(FullyConnected(), (x, weights), a),
        node(FullyConnected(), (a, weights), y),
    ]
    model = graph(layers, [x], [y])
    config = BASE.with_(optimize="flash")
    artifact = microtir.build(module_of(model), config)
    size = macro(artifact, "WEIGHTS_SIZE")
    assert artifact.metadata.weights_bytes == size < 2 * 36
    assert sum(array.bytes for array in measured(artifact.module).flash.arrays) == size
    error = refusal(model, config.with_(budget=Budget(flash=1)))
    assert "36 bytes for layer0_fully_connected, layer1_fully_connected" in str(error)


def test_functions_of_a_user_have_a_flash_budget_too() -> None:
    """A program without a model has constants as well, and they are counted alike."""
    x = te.placeholder((4,), DType.FLOAT32, "x")
    table = te.constant(np.arange(4, dtype=np.float32), "table")
    schedule = te.create_schedule(te.compute((4,), lambda i: x[i] + table[i], "y"))
    size = measured(microtir.build(schedule, BASE).module).flash.bytes
    microtir.build(schedule, BASE.with_(budget=Budget(flash=size)))
    with pytest.raises(MemoryPlanError, match="1 more than the budget"):
        microtir.build(schedule, BASE.with_(budget=Budget(flash=size - 1)))


def test_less_flash_is_slower_and_fits() -> None:
    """Between the fastest program and the smallest each budget is kept, and used."""
    fast = BASE.with_(targets="c -mcpu=cortex-m4", optimize="speed")
    model = layered_graph()
    most = measured(microtir.build(module_of(model), fast).module).flash.bytes
    least = measured(
        microtir.build(module_of(model), fast.with_(optimize="flash")).module
    ).flash.bytes
    costs = []
    for size in (most, (most + least) // 2, least):
        built = microtir.build(module_of(model), fast.with_(budget=Budget(flash=size)))
        assert measured(built.module).flash.bytes <= size
        assert built.module.model is not None
        costs.append(sum(d.instructions for d in built.module.model.decisions.values()))
    assert costs == sorted(costs) and costs[0] < costs[-1]


def test_kernels_that_go_too_deep_make_way() -> None:
    """A budget below the stack of the fastest program is kept by slower kernels."""
    fast = BASE.with_(targets="c -mcpu=cortex-m4", optimize="speed")
    model = layered_graph()
    deep = microtir.build(module_of(model), fast).metadata.stack.bytes
    built = microtir.build(module_of(model), fast.with_(budget=Budget(stack=deep - 1)))
    assert built.metadata.stack.bytes < deep
    # Flash is searched for within what the stack leaves, and the other way round.
    size = measured(built.module).flash.bytes
    both = fast.with_(budget=Budget(stack=deep - 1, flash=size))
    assert microtir.build(module_of(model), both).metadata.stack.bytes < deep


def layered_graph() -> Graph:
    """Convolutions with kernels to choose from."""
    rng = np.random.default_rng(3)
    tensors = [tensor(f"t{n}", (1, 8, 8, 16), DType.INT8, quant(0.1, 3)) for n in range(4)]
    layers = []
    for number, (x, y) in enumerate(pairwise(tensors)):
        taps = (3, 1, 1)[number]
        data = rng.integers(-99, 99, (16, taps, taps, 16)).astype(np.int8)
        w = constant(f"w{number}", data, quant(0.01))
        padding = Padding2D(*([taps // 2] * 4))
        layers.append(node(Conv2D((1, 1), (1, 1), padding), (x, w), y))
    return graph(layers, [tensors[0]], [tensors[-1]])


def test_the_shallowest_program_fits_to_the_byte_or_is_refused() -> None:
    """The bound of the header is accepted as a limit, and what is too little names the calls."""
    model = tiny_graph()
    artifact = microtir.build(module_of(model), BASE)
    size = artifact.metadata.stack.bytes
    assert size == sum(frame.bytes for frame in artifact.metadata.stack.frames)
    same = microtir.build(module_of(model), BASE.with_(budget=Budget(stack=size)))
    assert program_text(same) == program_text(artifact)
    error = refusal(model, BASE.with_(budget=Budget(stack=100)))
    assert error.where == "budget.stack"
    found = re.match(r"one run may take (\d+) bytes of stack, (\d+) more than", error.what)
    assert found is not None and int(found[1]) - int(found[2]) == 100
    assert error.fix is not None
    assert "The deepest chain of calls, with bytes, is default_run " in error.fix
    assert ", layer1_fully_connected " in error.fix


def test_long_lists_are_cut() -> None:
    """The message shows the largest few buffers and says how many are left out."""
    inputs = [tensor(f"x{n}", (1, 8 + n), DType.INT8, quant(0.1)) for n in range(5)]
    parts = [tensor(f"a{n}", (1, 8 + n), DType.INT8, quant(0.2)) for n in range(5)]
    y = tensor("y", (1, 50), DType.INT8, quant(0.2))
    model = graph(
        [
            *(node(Quantize(), (x,), a) for x, a in zip(inputs, parts, strict=True)),
            node(Concatenation(axis=1), parts, y),
        ],
        inputs,
        [y],
    )
    error = refusal(model, BASE.with_(budget=Budget(ram=1)))
    assert error.fix is not None and error.fix.endswith("; and 2 smaller")
    assert error.fix.index("12 bytes") < error.fix.index("11 bytes") < error.fix.index("10 bytes")
