"""The numpy reference against tflite-micro."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from microtir.graph.reference import execute
from microtir.graph.verify import verify
from tests.support.operator_cases import generate, operator_dtypes
from tests.support.sketch import Case
from tests.support.tflm import run_tflm

SEEDS = {"int8": 40, "float32": 15}
OTHER_SEEDS = 10

FLOAT_TOLERANCE = 2.0**-18
"""Of the largest result: tflite-micro adds up to some hundred float32 products one by one, the
reference in double."""


def _pairs(case: Case) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """Outputs of the reference beside those of tflite-micro."""
    graph = case.graph()
    verify(graph)
    actual = execute(graph, case.named_inputs())
    expected = run_tflm(case.model, *case.inputs, outputs=case.outputs)
    return list(zip(actual.values(), expected, strict=True))


@pytest.mark.tools
@pytest.mark.parametrize(("operator", "dtype"), operator_dtypes())
def test_reference_equals_tflite_micro(operator: str, dtype: str) -> None:
    """Integers are identical, floats as close as the order of summation allows."""
    for seed in range(SEEDS.get(dtype, OTHER_SEEDS)):
        case = generate(operator, seed, dtype)
        for actual, expected in _pairs(case):
            assert actual.dtype == expected.dtype and actual.shape == expected.shape, case.name
            if actual.dtype.kind == "f":
                tolerance = FLOAT_TOLERANCE * max(1.0, float(np.abs(expected).max()))
                assert np.abs(actual - expected).max() <= tolerance, case.name
            else:
                assert np.array_equal(actual, expected), case.name
