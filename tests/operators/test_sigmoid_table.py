"""LOGISTIC and TANH of every int16, which look it up in a table that is computed here."""

from __future__ import annotations

import numpy as np
import pytest

from microtir.operators.common.sigmoid_table import (
    SigmoidScaling,
    check_scaling,
    power_of_two_scaling,
    sigmoid_scaling,
)
from microtir.rewrite.reference import execute
from tests.support.sketch import Case, Quant, Sketch
from tests.support.tflm import run_tflm

EVERY_VALUE = np.arange(-(1 << 15), 1 << 15).astype(np.int16).reshape(256, 256)


def case(operator: str, scale: float) -> Case:
    """A model of one operator that is given every int16."""
    s = Sketch("every_value", operator, np.dtype(np.int16), np.random.default_rng(0))
    x = s.input((256, 256), Quant(scale, 0), EVERY_VALUE)
    return s.finish([x], s.output((256, 256), Quant(2.0**-15, 0)))


@pytest.mark.tools
@pytest.mark.parametrize("operator", ["LOGISTIC", "TANH"])
@pytest.mark.parametrize("scale", [2.0**-13, 2.0**-12, 2.0**-11, 3.17e-4, 1.9e-3, 2e-9])
def test_every_value_is_that_of_tflite_micro(operator: str, scale: float) -> None:
    """All entries of the table and all ways between them are met."""
    model = case(operator, scale)
    (actual,) = execute(model.graph(), model.named_inputs()).values()
    (expected,) = run_tflm(model.model, *model.inputs)
    assert np.array_equal(actual, expected)


def test_scalings() -> None:
    """Powers of two have an exact multiplier where an operator has shifts for them."""
    assert sigmoid_scaling(2.0**-12, (0,)) == power_of_two_scaling(-12) == SigmoidScaling(3, 0)
    assert sigmoid_scaling(2.0**-11, (0, 1)) == SigmoidScaling(6, 0)
    assert sigmoid_scaling(2.0**-11, (0,)) == SigmoidScaling(6 << 12, 12)
    assert power_of_two_scaling(-15) == SigmoidScaling(3, 3)
    assert [bool(list(check_scaling(sigmoid_scaling(s, (0,))))) for s in (2.6, 2.7, 1e-20)] == [
        False,
        True,
        False,
    ]
