"""Models of a batch of two take the memory and the kernels of one image."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig, frontend
from microtir.config import Optimize
from microtir.graph.ir import Graph
from microtir.graph.rewriting import substitute
from microtir.module.ir_module import IRModule
from microtir.module.program import Program

GOALS = [
    ("ad01_int8", Optimize.RAM_LEAST),
    ("kws_int8", Optimize.RAM_LEAST),
    ("resnet8_int8", Optimize.BALANCED),
    ("vww_int8", Optimize.BALANCED),
]
EACH = [pytest.param(*goal, marks=pytest.mark.model(goal[0])) for goal in GOALS]
M4 = "c -mcpu=cortex-m4"


def batched(graph: Graph, images: int) -> Graph:
    """Return a graph on so many images; its operators keep them apart."""
    varying = (*graph.inputs, *(tensor for node in graph.nodes for tensor in node.outputs))
    more = {
        tensor: replace(
            tensor,
            type=replace(tensor.type, shape=(images * tensor.shape[0], *tensor.shape[1:])),
        )
        for tensor in varying
    }
    return replace(
        graph,
        inputs=tuple(more[tensor] for tensor in graph.inputs),
        outputs=tuple(more[tensor] for tensor in graph.outputs),
        nodes=tuple(substitute(node, more) for node in graph.nodes),
    )


def program(graph: Graph, goal: Optimize) -> Program:
    """The program of a graph."""
    config = CompilationConfig(targets=M4, module_name="net", optimize=goal)
    return microtir.lower(IRModule(graph=graph, config=config)).require_program("test")


@pytest.mark.parametrize(("name", "goal"), EACH)
def test_two_images_take_the_memory_of_one(models_dir: Path, name: str, goal: Optimize) -> None:
    """Convolutions stream as for one image, by the same kernels; dense layers share a call."""
    graph = frontend.from_tflite(models_dir / f"{name}.tflite").graph
    assert graph is not None
    one, two = program(graph, goal), program(batched(graph, 2), goal)
    assert two.placement.workspace_size == one.placement.workspace_size
    if name == "ad01_int8":
        assert two.graph.images == 1  # without windows: both images at once, which is faster
        return
    assert two.graph.images == 2
    kernels = [[d.kernel for d in p.decisions.values()] for p in (one, two)]
    groups = [[d.group for d in p.decisions.values()] for p in (one, two)]
    assert kernels[0] == kernels[1]
    assert groups[0] == groups[1]
