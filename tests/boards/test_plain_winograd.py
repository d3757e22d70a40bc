"""Winograd's kernels in plain C: what they compute on emulated cores, and what that takes."""

from __future__ import annotations

import numpy as np
import pytest

from microtir import driver
from microtir.boards import load_board
from microtir.config import CompilationConfig
from microtir.kernels.c_blocks.winograd import FAST, NARROW, WIDE, Form
from microtir.module.ir_module import IRModule
from microtir.operators.convolution.definition import Conv2D
from microtir.profiling import profile
from microtir.projects import ProjectOptions, Samples
from microtir.rewrite.reference import execute
from tests.kernels.test_code_bytes import SAME, linear
from tests.support.graphs import graph

PRECISION = 0.03


@pytest.mark.compiler_version
@pytest.mark.parametrize(
    ("name", "kernel", "form", "shape"),
    [
        ("mps2_an385", "conv_s8_16x2_c_winograd", FAST, (5, 21, 17, 11)),
        ("riscv32", "conv_s8_16x4_c_winograd", WIDE, (6, 17, 12, 10)),
        ("riscv32_zbb", "conv_s8_16x4_zbb_winograd", WIDE, (4, 8, 40, 12)),
        ("microbit", "conv_s8_16x1_c_winograd", NARROW, (5, 16, 9, 8)),
    ],
)
def test_outputs_and_costs_on_the_emulator(
    name: str, kernel: str, form: Form, shape: tuple[int, int, int, int]
) -> None:
    """Every bit is the reference's; instructions and cycles are those that are stated."""
    height, width, channels, outputs = shape
    layer = linear(Conv2D(padding=SAME), (1, height, width, channels), (outputs, 3, 3, channels))
    board = load_board(name)
    config = CompilationConfig.from_target(board.target).with_(optimize="speed", module_name="m")
    model = graph((layer,), layer.activations, layer.outputs)
    artifact = driver.build(IRModule(graph=model), config)
    (operator,) = artifact.module.require_program("test").plan.operators
    assert operator.candidate.kernel == kernel
    x = np.random.default_rng(0).integers(-128, 128, layer.inputs[0].shape).astype(np.int8)
    samples = Samples({"x": x[None]}, {"y": execute(model, {"x": x})["y"][None]})
    measured = profile(artifact, board, options=ProjectOptions(samples={"m": samples}))
    stated = operator.candidate.cost(operator.candidate.calls)
    part = measured.layers[1]
    assert stated.instructions * 100 / form.told == pytest.approx(part.instructions, rel=PRECISION)
    assert stated.cycles * 100 / form.told_cycles == pytest.approx(part.cycles, rel=PRECISION)
