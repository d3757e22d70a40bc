"""Recurrent layers on an emulated Arm core: assembly multiplies their weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Target
from microtir.config.enums import Optimize
from microtir.rewrite.reference import execute
from scripts.models.recurrent import Kind, svdf
from tests.support.emulated_arm import M4, differing
from tests.support.operator_cases import generate
from tests.support.seeds import is_soak, seeds
from tests.support.sketch import Case

CONFIG = CompilationConfig.from_target(Target("c -mcpu=cortex-m4")).with_(optimize=Optimize.SPEED)
Cases = Callable[[], list[Case]]
COUNT = 4 if is_soak() else 2


def lstm_cases(dtype: str = "int8") -> list[Case]:
    """Random ones."""
    return [generate("UNIDIRECTIONAL_SEQUENCE_LSTM", seed, dtype) for seed in seeds(400, COUNT)]


def svdf_cases() -> list[Case]:
    """Inputs of whole quads and with a rest, filters of one block and of several."""
    made = []
    for seed in seeds(400, COUNT):
        rng = np.random.default_rng(seed)
        width, filters, length = (int(rng.integers(*ends)) for ends in ((20, 60), (12, 90), (1, 9)))
        x = rng.integers(-128, 128, (1, width)).astype(np.int8)
        model = svdf(Kind.INT8, width - width % 4 if seed % 2 else width, filters, length)
        x = x[:, : width - width % 4] if seed % 2 else x
        made.append(Case(f"svdf_{seed}", model, (x,), 1))
    return made


@pytest.mark.parametrize(
    ("cases", "kernel"),
    [
        (lstm_cases, "lstm_s8_1x8_dsp"),
        (partial(lstm_cases, "int16"), "lstm_s16_1x8_dsp"),
        (svdf_cases, "svdf_s8_1x8_dsp"),
    ],
)
def test_assembly_equals_the_reference(
    tmp_path: Path, cases: Callable[[], list[Case]], kernel: str
) -> None:
    """Inputs and outputs lie at every offset; nothing beside them is written."""
    drawn = cases()
    artifacts = [
        microtir.build(
            microtir.frontend.from_tflite(case.model, name=case.name),
            CONFIG.with_(module_name=case.name),
        )
        for case in drawn
    ]
    chosen = [
        operator.candidate.kernel
        for artifact in artifacts
        for operator in artifact.module.require_program("test").plan.operators
    ]
    # Loops may be less for one that is small.
    assert chosen.count(kernel) >= len(drawn) - 1 or is_soak(), chosen
    expected = [execute(c.graph(), c.named_inputs())[c.graph().results[0].name] for c in drawn]
    inputs = [case.inputs for case in drawn]
    assert differing(M4, artifacts, inputs, expected, tmp_path) == []
