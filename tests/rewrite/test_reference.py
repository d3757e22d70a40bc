"""The numpy reference against tflite-micro, and against LiteRT where that has no kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from microtir.rewrite.reference import execute
from microtir.rewrite.verify import verify
from tests.support.litert import run_litert
from tests.support.operator_cases import (
    OPERATORS,
    RECURRENT,
    Oracle,
    generate,
    operator_dtypes,
)
from tests.support.sketch import Case
from tests.support.tflm import run_tflm

SEEDS = {"int8": 40, "float32": 15}
OTHER_SEEDS = 10

FLOAT_TOLERANCE = 2.0**-18
"""Of the largest result: tflite-micro adds up to some hundred float32 products one by one, the
reference in double."""


def _pairs(case: Case, oracle: Oracle) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """Outputs of the reference beside those of the oracle."""
    graph = case.graph()
    verify(graph)
    values = execute(graph, case.named_inputs())
    actual = [values[tensor.name] for tensor in graph.results]
    if oracle is Oracle.LITERT:
        expected = run_litert(case.oracle_model, *case.inputs)
    else:
        expected = run_tflm(case.oracle_model, *case.inputs, outputs=case.outputs)
    return list(zip(actual, expected, strict=True))


@pytest.mark.tools
@pytest.mark.parametrize(("operator", "dtype"), operator_dtypes())
def test_reference_equals_its_oracle(operator: str, dtype: str) -> None:
    """Integers are identical, floats as close as the order of summation allows."""
    oracle = (OPERATORS.get(operator) or RECURRENT[operator]).oracle(dtype)
    for seed in range(SEEDS.get(dtype, OTHER_SEEDS)):
        case = generate(operator, seed, dtype)
        for actual, expected in _pairs(case, oracle):
            assert actual.dtype == expected.dtype and actual.shape == expected.shape, case.name
            if actual.dtype.kind == "f":
                tolerance = FLOAT_TOLERANCE * max(1.0, float(np.abs(expected).max()))
                assert np.abs(actual - expected).max() <= tolerance, case.name
            else:
                assert np.array_equal(actual, expected), case.name
