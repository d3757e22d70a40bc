"""Defects of microTVM with CMSIS-NN: D19, D21; against the stand-in of tests/external."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig
from microtir.errors import RunError
from microtir.frontend import from_tflite
from microtir.module.ir_module import IRModule
from microtir.rewrite import reference
from tests.support.operator_cases import generate
from tests.support.small_models import quantised_graph

STAND_IN = Path(__file__).parents[1] / "support" / "cmsis_nn_stand_in"


def config(folder: Path) -> CompilationConfig:
    """Everything that the library can compute is computed by it."""
    return CompilationConfig(targets="c -mcpu=cortex-m4", external=f"cmsis-nn={folder},all")


def test_d19_failures_of_the_library_are_failures(tmp_path: Path) -> None:
    """`switch (!status)` turned every failure into success."""
    folder = tmp_path / "library"
    shutil.copytree(STAND_IN, folder)
    for file in (folder / "Source").rglob("arm_fully_connected.c"):
        text = file.read_text().replace("ARM_CMSIS_NN_SUCCESS", "ARM_CMSIS_NN_FAILURE")
        file.write_text(text)
    model = microtir.host.load(microtir.build(IRModule(graph=quantised_graph()), config(folder)))
    with pytest.raises(RunError, match="reported a failure"):
        model.run({"image": np.zeros((1, 3, 4, 1), np.int8)})


def test_d21_average_pooling_gets_its_buffer() -> None:
    """The context had no buffer, and the library refused it."""
    case = generate("AVERAGE_POOL_2D", 0, "int8")
    module = from_tflite(case.model)
    assert module.graph is not None
    artifact = microtir.build(module, config(STAND_IN))
    assert [bool(layer.externs) for layer in artifact.metadata.layers] == [True]
    names = [tensor.name for tensor in module.graph.inputs]
    inputs = dict(zip(names, case.inputs, strict=True))
    got = microtir.host.load(artifact).run(inputs)
    for name, array in reference.execute(module.graph, inputs).items():
        assert np.array_equal(got[name], array)
