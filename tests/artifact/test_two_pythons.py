"""Files and archives are the same bytes, whichever Python and numpy compile the model."""

from __future__ import annotations

import builtins
import json
import math
import os
import subprocess
from collections.abc import Iterable

import numpy as np
import pytest

from microtir.support.float_text import float32_text
from microtir.support.sums import sum_in_order
from tests.artifact import digests
from tests.support.other_python import ROOT, other_python


def test_another_python_writes_the_same_bytes() -> None:
    """C, archives of Model Library Format and of packages, for integers and for floats."""
    python = other_python("cffi, flatbuffers, jinja2, numpy, tflite, typer")
    if python is None:
        pytest.skip("no other version of Python has the packages: make test-other sets it up")
    paths = {"PYTHONPATH": os.pathsep.join([str(ROOT / "generator"), str(ROOT)])}
    done = subprocess.run(
        [python, "-m", "tests.artifact.digests"],
        cwd=ROOT, env={**os.environ, **paths}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    own = digests.digests()
    assert json.loads(done.stdout) == own
    assert {"integers.tar", "floats.tar", "integers.zip", "floats m.c"} <= own.keys()


def test_estimates_add_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """`sum` of Python 3.12 corrects rounding: an estimate was a byte less there."""
    own = builtins.sum

    def corrected(values: Iterable[float], /, start: float = 0) -> float:
        numbers = list(values)
        if any(type(number) is float for number in numbers):
            return math.fsum([start, *numbers]) + 1.0
        return own(numbers, start)

    before = digests.digests()
    monkeypatch.setattr(builtins, "sum", corrected)
    assert digests.digests() == before
    assert sum_in_order([1e16, 1.0, 1.0]) == 1e16


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12582912.0, "1.2582912e+07"), (1e12, "1e+12"), (-3.7e11, "-3.7e+11"), (1e6, "1e+06"),
        (999999.0, "999999.0"), (0.1, "0.1"), (1e-4, "1e-04"), (-0.0, "-0.0"), (1e20, "1e+20"),
    ],
)  # fmt: skip
def test_floats_are_spelt_as_ever(value: float, text: str) -> None:
    """Until 2.2 numpy wrote large numbers without an exponent."""
    assert float32_text(value) == text
    assert np.float32(text) == np.float32(value)
