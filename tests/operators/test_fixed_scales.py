"""Outputs whose scale the range of a function decides, where a file has nearly that scale."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from microtir.operators.common.tflite_schema import BuiltinOperator as Code
from microtir.rewrite.reference import execute
from tests.frontend.models import Value, model, read, refusal
from tests.support.tflm import run_tflm

FIXED = [
    (Code.SOFTMAX, np.int8, np.int16, 2.0**-16, -(1 << 15), (1.000015, 1.0009, 0.9991)),
    (Code.SOFTMAX, np.int16, np.int16, 2.0**-15, 0, (1.000015, 1.0009, 0.9991)),
    (Code.LOGISTIC, np.int8, np.int8, 2.0**-8, -128, (1.000015, 1.0009, 0.9991)),
    (Code.LOGISTIC, np.int16, np.int16, 2.0**-15, 0, (1.000015, 1.0006)),
    (Code.TANH, np.int8, np.int8, 2.0**-7, 0, (1.000015, 1.0009, 0.9991)),
    (Code.TANH, np.int16, np.int16, 2.0**-15, 0, (1.000015, 1.0006)),
]


@pytest.mark.parametrize(("code", "source", "result", "scale", "zero_point", "near"), FIXED)
def test_a_scale_that_is_nearly_the_fixed_one_is_taken_for_it(
    code: Code,
    source: npt.DTypeLike,
    result: npt.DTypeLike,
    scale: float,
    zero_point: int,
    near: tuple[float, ...],
) -> None:
    """It computes what tflite-micro does: with the exact scale; one farther off is refused."""
    ends = np.iinfo(source)
    x = np.random.default_rng(5).integers(ends.min, ends.max + 1, (4, 16)).astype(source)
    step = float(np.float32(0.05 if x.itemsize == 1 else 1e-4))

    def scaled(factor: float) -> bytes:
        given = Value((4, 16), source, None, (step,), (0,))
        made = Value((4, 16), result, None, (float(np.float32(scale * factor)),), (zero_point,))
        return model(code, [given], made)

    for factor in near:
        data = scaled(factor)
        (want,) = run_tflm(data, x)
        np.testing.assert_array_equal(execute(read(data), {"x0": x})["y0"], want)
    assert f"scale {scale:.9g} and zero point {zero_point}" in refusal(scaled(1.002))
