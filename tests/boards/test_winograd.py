"""What Winograd's kernels state is what an emulated Cortex-M4 counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from microtir import driver
from microtir.boards import load_board
from microtir.config import CompilationConfig
from microtir.kernels import candidates
from microtir.module.ir_module import IRModule
from microtir.operators.convolution.definition import Conv2D
from microtir.plan.ir import IN_ONE_CALL
from microtir.profiling import profile
from tests.kernels.test_code_bytes import SAME, linear
from tests.support.forced import forced
from tests.support.graphs import graph

PRECISION = 0.03


SQUARES, ROWS, FEW = (f"conv_s8_{tile}_dsp_winograd" for tile in ("16x2", "8x2", "4x4"))
BANDS = {rows: f"{SQUARES}_bands_{rows}" for rows in (2, 4)}


@pytest.mark.compiler_version
@pytest.mark.parametrize(
    ("kernel", "height", "width", "channels", "outputs"),
    [
        (SQUARES, 8, 16, 8, 16), (SQUARES, 6, 21, 18, 5), (SQUARES, 4, 8, 40, 12),
        (SQUARES, 4, 9, 112, 4),
        (ROWS, 8, 16, 8, 16), (ROWS, 3, 21, 11, 5), (ROWS, 4, 8, 40, 12),
        (FEW, 8, 16, 8, 16), (FEW, 3, 21, 9, 5), (FEW, 4, 7, 40, 12), (FEW, 4, 4, 16, 8),
        (BANDS[2], 6, 21, 30, 5), (BANDS[2], 4, 8, 40, 12), (BANDS[4], 8, 16, 8, 16),
        (BANDS[4], 7, 9, 72, 7),
    ],
)  # fmt: skip
def test_stated_costs_are_those_of_the_emulator(
    kernel: str, height: int, width: int, channels: int, outputs: int, tmp_path: Path
) -> None:
    """Instructions and cycles: tails of rows, words and channels, loops, rows that lie far."""
    layer = linear(Conv2D(padding=SAME), (1, height, width, channels), (outputs, 3, 3, channels))
    board = load_board("mps2_an386")
    config = CompilationConfig.from_target(board.target).with_(optimize="speed", module_name="m")
    if kernel in BANDS.values():  # offered where flash is limited
        config = config.with_(budget={"flash": 1 << 30})
    (offered,) = (c for c in candidates(layer, config) if c.kernel == kernel)
    config = forced(config, layer, kernel, tmp_path)
    module = IRModule(graph=graph((layer,), layer.activations, layer.outputs))
    artifact = driver.build(module, config)
    (operator,) = artifact.module.require_program("test").plan.operators
    assert operator.candidate.kernel == kernel
    stated = offered.cost(IN_ONE_CALL)
    measured = profile(artifact, board).layers[1]
    assert stated.instructions == pytest.approx(measured.instructions, rel=PRECISION)
    assert stated.cycles == pytest.approx(measured.cycles, rel=PRECISION)
