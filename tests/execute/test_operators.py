"""Operator to C to machine code: every operator and type, over random shapes and attributes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.execute.cases import cases_of, compare
from tests.support.c_compilers import STRICT
from tests.support.operator_cases import OPERATORS
from tests.support.sanitizers import run_sanitized
from tests.support.seeds import is_soak, seeds

SEEDS = seeds(100, 5 if is_soak() else 3)
SANITIZED_SEEDS = seeds(200, 1)


# Of the road from a file to C that runs, the quick tier has these.
QUICK = ("ADD", "CONV_2D", "SOFTMAX")
EACH = [pytest.param(o, marks=pytest.mark.quick) if o in QUICK else o for o in OPERATORS]


@pytest.mark.soak
@pytest.mark.parametrize("operator", EACH)
def test_c_equals_reference(operator: str, tmp_path: Path) -> None:
    """Integers equal to the bit, floats within 1e-5; compiled without a warning."""
    dtypes = OPERATORS[operator].dtypes
    compare(cases_of(operator, dtypes, SEEDS), tmp_path, STRICT)


@pytest.mark.soak
@pytest.mark.timeout(900)  # hundreds of programs
def test_c_is_clean_under_sanitizers(tmp_path: Path) -> None:
    """All operators once more under sanitizers, and sums that leave 32 bits.

    A signed overflow is undefined in C, whatever the machine makes of it.
    """
    assert run_sanitized("tests.execute.sanitized", tmp_path) == f"{len(OPERATORS)} operators clean"
