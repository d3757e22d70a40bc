"""Matrix products share kernels, or have their own, as their goal has it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Target
from microtir.config.enums import Optimize
from microtir.dtype import DType
from microtir.graph.ir import Graph
from microtir.module.ir_module import IRModule
from microtir.operators.common.attributes import Padding2D
from microtir.operators.convolution.definition import Conv2D
from tests.support import graphs


def two_layers(middle: int = 40, size: int = 6) -> Graph:
    """Pointwise convolutions of 12 channels to some and of these to 9, requantised alike."""
    rng = np.random.default_rng(3)
    tensors = [graphs.tensor("x", (1, size, size, 12), DType.INT8, graphs.quant(1 / 64, 0))]
    nodes = []
    for number, (inputs, outputs) in enumerate([(12, middle), (middle, 9)]):
        quant = graphs.per_channel([0.002 + 0.0005 * n for n in range(outputs)], 0)
        values = rng.integers(-20, 20, (outputs, 1, 1, inputs)).astype(np.int8)
        weights = graphs.constant(f"w{number}", values, quant)
        shape = (1, size, size, outputs)
        y = graphs.tensor(f"y{number}", shape, DType.INT8, graphs.quant(1 / 16, 0))
        op = Conv2D((1, 1), dilations=(1, 1), padding=Padding2D(0, 0, 0, 0))
        nodes.append(graphs.node(op, (tensors[-1], weights), y))
        tensors.append(y)
    return graphs.graph(nodes, [tensors[0]], [tensors[-1]])


def kernels_of(graph: Graph, goal: Optimize, pixels: int) -> list[str]:
    """Names of the kernels for blocks of so many pixels in the generated C."""
    target = Target("c -mcpu=cortex-m4")
    config = CompilationConfig.from_target(target).with_(module_name="m", optimize=goal)
    artifact = microtir.build(IRModule(graph=graph), config)
    text = "".join(file.text for file in artifact.sources)
    return sorted(set(re.findall(rf"m_(gemm{pixels}\w*)\(", text)))


@pytest.mark.parametrize(
    ("goal", "kernels"),
    [
        (Optimize.BALANCED, ["gemm2_linear"]),
        (Optimize.SPEED, ["gemm2_20_linear", "gemm2_6_linear"]),
    ],
)
def test_layers_share_a_kernel_where_code_counts(goal: Optimize, kernels: list[str]) -> None:
    """At `balanced` one body serves layers of all shapes; at `speed` short sums have their own."""
    assert kernels_of(two_layers(), goal, 2) == kernels


@pytest.mark.parametrize(
    ("middle", "kernels"), [(40, ["gemm1_linear"]), (41, ["gemm1_linear", "gemm1_odd_linear"])]
)
def test_single_pixels_take_two_steps_at_a_time(middle: int, kernels: list[str]) -> None:
    """Where the number of steps is odd, as of 41 values, a kernel of its own takes one alone."""
    assert kernels_of(two_layers(middle, size=5), Optimize.BALANCED, 1) == kernels
