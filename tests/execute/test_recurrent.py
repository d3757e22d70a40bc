"""Recurrent layers in C over many runs: each goes on with what the one before has left."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Target
from microtir.config.enums import Optimize
from microtir.rewrite.reference import execute_steps
from tests.support.batch import load_batch
from tests.support.c_compilers import STRICT
from tests.support.operator_cases import RECURRENT, generate
from tests.support.recurrent import steps_of
from tests.support.seeds import seeds

TYPES = [(name, dtype) for name, kind in RECURRENT.items() for dtype in kind.dtypes]


@pytest.mark.soak
@pytest.mark.parametrize(("cpu", "first"), [("cortex-m3", 700), ("cortex-m4", 750)])
def test_sequences_equal_the_reference(tmp_path: Path, cpu: str, first: int) -> None:
    """Of all types, with kernels of both CPUs, whose C is compiled for this machine."""
    config = CompilationConfig.from_target(Target(f"c -mcpu={cpu}"))
    cases = [generate(name, seed, dtype)
             for name, dtype in TYPES for seed in seeds(first, 1)]  # fmt: skip
    artifacts = [
        microtir.build(
            microtir.frontend.from_tflite(case.model, name=case.name),
            config.with_(module_name=case.name, optimize=list(Optimize)[n % len(Optimize)]),
        )
        for n, case in enumerate(cases)
    ]
    for case, model in zip(cases, load_batch(artifacts, tmp_path, flags=STRICT), strict=True):
        graph = case.graph()
        (x,), (y,) = graph.arguments, graph.results
        steps = [{x.name: values} for values in steps_of(case)]
        wanted = [outputs[y.name] for outputs in execute_steps(graph, steps)]
        got = [outputs[y.name] for outputs in model.run_sequence(steps)]
        for number, (actual, expected) in enumerate(zip(got, wanted, strict=True)):
            text = f"{case.name}, run {number}"
            if expected.dtype.kind == "f":
                near = 4e-6 * max(1.0, float(np.abs(expected).max()))
                np.testing.assert_allclose(actual, expected, rtol=0, atol=near, err_msg=text)
            else:
                np.testing.assert_array_equal(actual, expected, err_msg=text)
