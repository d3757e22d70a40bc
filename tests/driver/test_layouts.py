"""Layouts on edges: who gets planes, and that outsiders see rows as the model has them."""

from __future__ import annotations

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Target, host
from microtir.codegen.metadata import PlanesData
from microtir.dtype import DType
from microtir.graph.ir import Graph
from microtir.module.ir_module import IRModule
from microtir.operators.common.attributes import Padding2D
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.plan.ir import LayoutKind
from microtir.rewrite.reference import execute
from tests.support import graphs

M4 = CompilationConfig.from_target(Target("c -mcpu=cortex-m4")).with_(module_name="net")
SHAPE = (1, 12, 12, 16)


def separable(*, read_twice: bool = False) -> Graph:
    """A pointwise convolution and a depthwise one; what is between may be an output, too."""
    rng = np.random.default_rng(5)
    x, middle, y = (
        graphs.tensor(name, SHAPE, DType.INT8, graphs.quant(1 / 32, 3)) for name in ("x", "m", "y")
    )
    quant = [graphs.per_channel([0.01] * 16, axis) for axis in (0, 3)]
    shapes = (16, 1, 1, 16), (1, 3, 3, 16)
    weights = [
        graphs.constant(f"w{n}", rng.integers(-40, 40, shape).astype(np.int8), quant[n])
        for n, shape in enumerate(shapes)
    ]
    nodes = [
        graphs.node(Conv2D(), (x, weights[0]), middle),
        graphs.node(DepthwiseConv2D(padding=Padding2D(1, 1, 1, 1)), (middle, weights[1]), y),
    ]
    return graphs.graph(nodes, [x], [middle, y] if read_twice else [y])


def planned(graph: Graph, config: CompilationConfig) -> tuple[LayoutKind, microtir.Artifact]:
    """The layout of the tensor between the layers, and the program."""
    artifact = microtir.build(IRModule(graph=graph), config)
    plan = artifact.module.require_program("test").plan
    return plan.layouts[plan.graph.nodes[0].output].kind, artifact


@pytest.mark.parametrize(
    ("config", "read_twice", "kind"),
    [
        (M4.with_(optimize="speed"), False, LayoutKind.PLANES16),
        (M4.with_(optimize="speed"), True, LayoutKind.NHWC),
        (M4.with_(optimize="speed", executor="graph"), False, LayoutKind.NHWC),
        (M4.with_(optimize="ram-least"), False, LayoutKind.NHWC),
    ],
    ids=["speed", "an output", "graph executor", "ram"],
)
def test_who_gets_planes(config: CompilationConfig, read_twice: bool, kind: LayoutKind) -> None:
    """An edge between two layers alone, where memory is free and nobody looks at tensors."""
    assert planned(separable(read_twice=read_twice), config)[0] is kind


def test_layers_are_seen_as_the_model_has_them() -> None:
    """Hosts that look at layers get (W, C), and metadata say why planes were written."""
    graph = separable()
    kind, artifact = planned(graph, M4.with_(optimize="speed"))
    assert kind is LayoutKind.PLANES16
    first = artifact.metadata.layers[0]
    facts = first.outputs[0].planes
    assert facts == PlanesData(channels=16, before=1, width=12, dtype="int8")
    assert "writes planes16 for its reader" in str(first.choice)
    data = np.random.default_rng(1).integers(-128, 128, SHAPE).astype(np.int8)
    outputs, layers = host.load(artifact, debug=True).run_layers({"x": data})
    want: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]] = {}
    execute(graph, {"x": data}, lambda node, arrays: want.update({node.name: arrays[0]}))
    for layer in layers:
        np.testing.assert_array_equal(layer.outputs[0].ravel(), want[layer.name].ravel())
    np.testing.assert_array_equal(outputs["y"], want["y_node"])
