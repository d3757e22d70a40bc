"""Matrix products share kernels, or have their own, as their goal has it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Target
from microtir.config.enums import Optimize
from microtir.graph import ops
from microtir.graph.ir import Graph
from microtir.ir_module import IRModule
from microtir.tir.dtype import DType
from tests.support import graphs


def two_layers() -> Graph:
    """Pointwise convolutions of 12 to 40 and of 40 to 9 channels, requantised alike."""
    rng = np.random.default_rng(3)
    tensors = [graphs.tensor("x", (1, 6, 6, 12), DType.INT8, graphs.quant(1 / 64, 0))]
    nodes = []
    for number, (inputs, outputs) in enumerate([(12, 40), (40, 9)]):
        quant = graphs.per_channel([0.002 + 0.0005 * n for n in range(outputs)], 0)
        values = rng.integers(-20, 20, (outputs, 1, 1, inputs)).astype(np.int8)
        weights = graphs.constant(f"w{number}", values, quant)
        y = graphs.tensor(f"y{number}", (1, 6, 6, outputs), DType.INT8, graphs.quant(1 / 16, 0))
        op = ops.Conv2D((1, 1), dilations=(1, 1), padding=ops.Padding2D(0, 0, 0, 0))
        nodes.append(graphs.node(op, (tensors[-1], weights), y))
        tensors.append(y)
    return graphs.graph(nodes, [tensors[0]], [tensors[-1]])


@pytest.mark.parametrize(
    ("goal", "kernels"),
    [
        (Optimize.BALANCED, ["gemm2_linear"]),
        (Optimize.SPEED, ["gemm2_20_linear", "gemm2_6_linear"]),
    ],
)
def test_layers_share_a_kernel_where_code_counts(goal: Optimize, kernels: list[str]) -> None:
    """At `balanced` one body serves layers of all shapes; at `speed` short sums have their own."""
    target = Target("c -mcpu=cortex-m4")
    config = CompilationConfig.from_target(target).with_(module_name="m", optimize=goal)
    artifact = microtir.build(IRModule(graph=two_layers()), config)
    text = "".join(file.text for file in artifact.sources)
    assert sorted(set(re.findall(r"m_(gemm2\w*)\(", text))) == kernels
