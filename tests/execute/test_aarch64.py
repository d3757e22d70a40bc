"""Generated C on an emulated 64-bit Arm: its own kernels, and the twins of those for x86-64."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Target
from microtir.config.enums import Optimize
from microtir.module.ir_module import IRModule
from microtir.rewrite.reference import execute
from tests.execute.vector import SIZES
from tests.support.dsp_cases import cases
from tests.support.emulated_arm import AARCH64, differing
from tests.support.seeds import seeds

PER_KIND = 3
OFTEN, SELDOM = ("kws_int8", "resnet8_int8"), ("ad01_int8", "strww_int8", "vww_int8")
MODELS = [pytest.param(name, marks=pytest.mark.model(name)) for name in OFTEN] + [
    pytest.param(name, marks=[pytest.mark.model(name), pytest.mark.soak_only]) for name in SELDOM
]


@pytest.mark.soak
@pytest.mark.parametrize("cpu", ["aarch64", "x86-64"])
def test_kernels_equal_the_reference(cpu: str, tmp_path: Path) -> None:
    """Kernels of every kind give every bit of the reference, and write nothing else."""
    config = CompilationConfig.from_target(Target(f"c -mcpu={cpu}"))
    some = cases(PER_KIND, seeds(700, PER_KIND).start, SIZES)
    artifacts = [
        microtir.build(
            IRModule(graph=case.graph),
            config.with_(module_name=case.name, optimize=Optimize.SPEED),
        )
        for case in some
    ]
    inputs = [case.inputs for case in some]
    wanted = [execute(case.graph, case.named_inputs())["y"] for case in some]
    assert differing(AARCH64, artifacts, inputs, wanted, tmp_path, ("-O2",)) == []


@pytest.mark.parametrize("model", MODELS)
def test_models_equal_golden(model: str, models_dir: Path, tmp_path: Path) -> None:
    """A reference model gives the golden outputs."""
    module = microtir.frontend.from_tflite(models_dir / f"{model}.tflite")
    config = CompilationConfig.from_target(Target("c -mcpu=aarch64"))
    artifact = microtir.build(module, config.with_(module_name=model))
    golden = np.load(models_dir / f"{model}.golden.npz")
    x, y = golden["inputs"][0], golden["outputs"][0]
    assert differing(AARCH64, [artifact], [[x]], [y], tmp_path, ("-O2",)) == []
