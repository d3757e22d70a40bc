"""What Winograd's kernels state is what an emulated Cortex-M4 counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from microtir import driver
from microtir.boards import load_board
from microtir.config import CompilationConfig
from microtir.graph.ir import Node
from microtir.kernels import candidates
from microtir.module.ir_module import IRModule
from microtir.operators.convolution.definition import Conv2D
from microtir.plan.ir import IN_ONE_CALL
from microtir.profiling import profile
from tests.kernels.test_code_bytes import SAME, linear
from tests.support.forced import forced
from tests.support.graphs import graph, node

PRECISION = 0.03


SQUARES, ROWS, FEW = (f"conv_s8_{tile}_dsp_winograd" for tile in ("16x2", "8x2", "4x4"))
BANDS = {rows: f"{SQUARES}_bands_{rows}" for rows in (2, 4)}


SHAPES = {
    SQUARES: [(8, 16, 8, 16), (6, 21, 18, 5), (4, 8, 40, 12), (4, 9, 112, 4)],
    ROWS: [(8, 16, 8, 16), (3, 21, 11, 5), (4, 8, 40, 12)],
    FEW: [(8, 16, 8, 16), (3, 21, 9, 5), (4, 7, 40, 12), (4, 4, 16, 8)],
    BANDS[2]: [(6, 21, 30, 5), (4, 8, 40, 12)],
    BANDS[4]: [(8, 16, 8, 16), (7, 9, 72, 7)],
}
"""Kernel -> height, width, channels and outputs of its layers."""


def layer_of(number: int, height: int, width: int, channels: int, outputs: int) -> Node:
    """Return a layer whose tensors have names of their own."""
    layer = linear(Conv2D(padding=SAME), (1, height, width, channels), (outputs, 3, 3, channels))
    x, weights = (replace(each, name=f"{each.name}{number}") for each in layer.inputs)
    return node(layer.op, (x, weights), replace(layer.output, name=f"y{number}"))


@pytest.mark.compiler_version
@pytest.mark.parametrize("kernel", SHAPES)
def test_stated_costs_are_those_of_the_emulator(kernel: str, tmp_path: Path) -> None:
    """Instructions and cycles: tails of rows, words and channels, loops, rows that lie far."""
    layers = [layer_of(number, *shape) for number, shape in enumerate(SHAPES[kernel])]
    board = load_board("mps2_an386")
    config = CompilationConfig.from_target(board.target).with_(optimize="speed", module_name="m")
    if kernel in BANDS.values():  # offered where flash is limited
        config = config.with_(budget={"flash": 1 << 30})
    offered = [c for each in layers for c in candidates(each, config) if c.kernel == kernel]
    config = forced(config, layers, kernel, tmp_path)
    inputs = [tensor for each in layers for tensor in each.activations]
    outputs = [tensor for each in layers for tensor in each.outputs]
    artifact = driver.build(IRModule(graph=graph(layers, inputs, outputs)), config)
    operators = artifact.module.require_program("test").plan.operators
    assert [operator.candidate.kernel for operator in operators] == [kernel] * len(layers)
    measured = profile(artifact, board).layers[1:]
    for candidate, found in zip(offered, measured, strict=True):
        stated = candidate.cost(IN_ONE_CALL)
        assert stated.instructions == pytest.approx(found.instructions, rel=PRECISION)
        assert stated.cycles == pytest.approx(found.cycles, rel=PRECISION)
