"""At `flash`, layers that differ in weights and shapes are one C function, with equal results."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Target
from microtir.codegen.program import make_program
from microtir.config.enums import Optimize
from microtir.dtype import DType
from microtir.errors import TirError
from microtir.graph.ir import Graph, Node, Tensor
from microtir.module.ir_module import IRModule
from microtir.operators.common.attributes import Padding2D
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.rewrite.reference import execute
from microtir.tir.ir import KernelCall, PrimFunc
from microtir.tir.passes import merging
from tests.support import graphs
from tests.support.batch import load_batch
from tests.support.c_compilers import strict_problems

CHANNELS = (3, 5, 4, 6, 2)
BORDER = Padding2D(1, 1, 1, 1)
PORTABLE = CompilationConfig(targets="c")


def activation(name: str, shape: tuple[int, ...], zero_point: int) -> Tensor:
    """An int8 tensor."""
    return graphs.tensor(name, shape, DType.INT8, graphs.quant(1 / 16, zero_point))


def layer(number: int, x: Tensor, y: Tensor, rng: np.random.Generator) -> Node:
    """A 3x3 convolution; every second one is depthwise."""
    channels, inputs = y.shape[-1], x.shape[-1]
    depthwise = channels == inputs
    shape = (1, 3, 3, channels) if depthwise else (channels, 3, 3, inputs)
    scales = [float(s) for s in rng.uniform(0.005, 0.02, channels)]
    data = rng.integers(-127, 128, shape).astype(np.int8)
    w = graphs.constant(f"w{number}", data, graphs.per_channel(scales, 3 if depthwise else 0))
    op = DepthwiseConv2D(padding=BORDER) if depthwise else Conv2D(padding=BORDER)
    return graphs.node(op, (x, w), y)


def chain(seed: int = 0) -> Graph:
    """Convolutions and depthwise ones in turn, all of other widths and zero points."""
    rng = np.random.default_rng(seed)
    x = first = activation("x", (1, 6, 7, CHANNELS[0]), -3)
    nodes = []
    for number, channels in enumerate(CHANNELS[1:]):
        wide = activation(f"wide{number}", (1, 6, 7, channels), int(rng.integers(-20, 20)))
        deep = activation(f"deep{number}", (1, 6, 7, channels), int(rng.integers(-20, 20)))
        nodes += [layer(2 * number, x, wide, rng), layer(2 * number + 1, wide, deep, rng)]
        x = deep
    return graphs.graph(nodes, (first,), [x])


def built(config: CompilationConfig, goal: Optimize, name: str = "chain") -> microtir.Artifact:
    """The chain for a goal."""
    named = config.with_(module_name=name, optimize=goal)
    return microtir.build(IRModule(graph=chain()), named)


def source(artifact: microtir.Artifact) -> str:
    """The C of the layers."""
    name = artifact.module.require_config("test").module_name
    return next(file.text for file in artifact.sources if file.path == f"{name}.c")


def definitions(text: str) -> list[str]:
    """Names of the shared functions that are defined."""
    return re.findall(r"^CHAIN_SHARED void chain_(\w+)\(", text, re.MULTILINE)


def test_layers_of_other_shapes_are_one_function() -> None:
    """Eight layers have half as many bodies at most, and each is a call of one."""
    text = source(built(PORTABLE, Optimize.FLASH))
    kinds = [name.split("_", 1)[1] for name in definitions(text)]
    assert set(kinds) == {"conv_2d", "depthwise_conv_2d"}
    assert len(kinds) <= 4
    layers = re.findall(r"^CHAIN_LAYER void chain_(layer\d)_", text, re.MULTILINE)
    assert layers == [f"layer{n}" for n in range(8)]
    assert len(text) < len(source(built(PORTABLE, Optimize.SPEED)))


@pytest.mark.parametrize("goal", [Optimize.SPEED, Optimize.BALANCED, Optimize.RAM_LEAST])
def test_other_goals_share_nothing(goal: Optimize) -> None:
    """Where code size is not the goal every layer has its own body."""
    assert definitions(source(built(PORTABLE, goal))) == []


def test_avr_keeps_its_bodies() -> None:
    """Constants in an AVR's flash cannot be given by pointer."""
    config = CompilationConfig.from_target(Target("c -mcpu=atmega2560"))
    assert definitions(source(built(config, Optimize.FLASH))) == []


def test_results_are_those_of_the_reference(tmp_path: Path) -> None:
    """What a layer gives its shared body is its own: weights, shapes, zero points."""
    graph = chain()
    (model,) = load_batch([built(PORTABLE, Optimize.FLASH)], tmp_path)
    rng = np.random.default_rng(5)
    for _ in range(4):
        data = {"x": rng.integers(-128, 128, (1, 6, 7, 3)).astype(np.int8)}
        (want,) = execute(graph, data).values()
        (got,) = model.run(data).values()
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_no_compiler_warns(tmp_path: Path, compiler: str) -> None:
    """Shared bodies pass the strict set."""
    for file in built(PORTABLE, Optimize.FLASH).sources:
        path = tmp_path / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, encoding="utf-8")
    assert strict_problems(tmp_path, compiler, "c99") == ""


def test_what_is_printed_is_what_lower_gives() -> None:
    """The functions of the lowered module are those of the C: nothing is merged behind it."""
    config = PORTABLE.with_(module_name="chain", optimize=Optimize.FLASH)
    lowered = microtir.lower(IRModule(graph=chain(), config=config))
    program = make_program(lowered)
    calls = [f for f in lowered.functions if isinstance(f.body, KernelCall)]
    shared = {f.body.meaning.name for f in calls if isinstance(f.body, KernelCall)}
    assert len(calls) > len(shared) >= 2
    assert {f"chain_{name}" for name in shared} <= set(program.names.values())
    assert set(lowered.functions) == set(program.functions) - program.kernels


def test_a_merged_layer_that_is_another_function_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each call is opened and compared with its layer: a wrong number in one is found."""
    right = merging._call

    def wrong(skeleton: merging._Skeleton, body: PrimFunc, numbers: Sequence[int]) -> PrimFunc:
        return right(skeleton, body, [number + 1 for number in numbers])

    monkeypatch.setattr(merging, "_call", wrong)
    with pytest.raises(TirError, match="the function computes another result"):
        built(PORTABLE, Optimize.FLASH)
