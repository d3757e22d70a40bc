"""What Winograd's kernel states is what an emulated Cortex-M4 counts."""

from __future__ import annotations

import pytest

from microtir import driver
from microtir.boards import load_board
from microtir.config import CompilationConfig
from microtir.ir_module import IRModule
from microtir.operators.convolution.definition import Conv2D
from microtir.profiling import profile
from tests.kernels.test_code_bytes import SAME, linear
from tests.support.graphs import graph

PRECISION = 0.03


@pytest.mark.parametrize(
    ("height", "width", "channels", "outputs"),
    [(8, 16, 8, 16), (6, 21, 16, 5), (4, 8, 40, 12), (4, 9, 112, 4)],
)
def test_stated_costs_are_those_of_the_emulator(
    height: int, width: int, channels: int, outputs: int
) -> None:
    """Instructions and cycles: with tails of rows and channels, loops, and rows that lie far."""
    layer = linear(Conv2D(padding=SAME), (1, height, width, channels), (outputs, 3, 3, channels))
    board = load_board("mps2_an386")
    config = CompilationConfig.from_target(board.target).with_(optimize="speed", module_name="m")
    module = IRModule(graph=graph((layer,), layer.activations, layer.outputs))
    artifact = driver.build(module, config)
    (operator,) = artifact.module.require_program("test").plan.operators
    assert operator.candidate.kernel == "conv_s8_16x2_dsp_winograd"
    stated = operator.candidate.cost(operator.candidate.calls)
    measured = profile(artifact, board).layers[1]
    assert stated.instructions == pytest.approx(measured.instructions, rel=PRECISION)
    assert stated.cycles == pytest.approx(measured.cycles, rel=PRECISION)
