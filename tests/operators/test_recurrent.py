"""Recurrent layers over many runs: each begins with what the one before has left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from microtir.graph.ir import Array
from microtir.rewrite.reference import execute_steps
from microtir.rewrite.verify import verify
from tests.support.operator_cases import RECURRENT, generate
from tests.support.recurrent import steps_of
from tests.support.sketch import Case
from tests.support.tflm import run_tflm_steps

SEEDS = 8
TYPES = [(name, dtype) for name, kind in RECURRENT.items() for dtype in kind.dtypes]


def by_reference(case: Case, steps: Sequence[Array]) -> list[Array]:
    """Outputs of the reference, run by run."""
    graph = case.graph()
    verify(graph)
    (x,), (y,) = graph.arguments, graph.results
    return [outputs[y.name] for outputs in execute_steps(graph, [{x.name: v} for v in steps])]


@pytest.mark.tools
@pytest.mark.parametrize(("operator", "dtype"), TYPES)
def test_sequences_equal_tflite_micro(operator: str, dtype: str) -> None:
    """Integers are identical after any number of runs, floats as close as sums allow."""
    for seed in range(SEEDS):
        case = generate(operator, seed, dtype)
        steps = steps_of(case)
        expected = run_tflm_steps(case.oracle_model, steps)
        for number, (got, want) in enumerate(zip(by_reference(case, steps), expected, strict=True)):
            if want.dtype.kind == "f":
                near = 2e-6 * max(1.0, float(np.abs(want).max()))
                np.testing.assert_allclose(got, want, rtol=0, atol=near, err_msg=case.name)
            else:
                np.testing.assert_array_equal(got, want, err_msg=f"{case.name}, run {number}")
