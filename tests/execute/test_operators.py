"""Operator to C to machine code: every operator and type, over random shapes and attributes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.execute.cases import cases_of, compare
from tests.support.c_compilers import STRICT
from tests.support.operator_cases import OPERATORS

SEEDS = range(100, 108)
SANITIZED_SEEDS = range(200, 203)
ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("operator", OPERATORS)
def test_c_equals_reference(operator: str, tmp_path: Path) -> None:
    """Integers equal to the bit, floats within 1e-5; compiled without a warning."""
    _, dtypes = OPERATORS[operator]
    compare(cases_of(operator, dtypes, SEEDS), tmp_path, STRICT)


def test_c_is_clean_under_sanitizers(tmp_path: Path) -> None:
    """All operators once more under AddressSanitizer and UndefinedBehaviorSanitizer.

    In a process of its own: the address sanitizer must be loaded before Python's allocator.
    """
    library = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True
    ).stdout.strip()
    environment = {
        **os.environ,
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "generator"), str(ROOT)]),
    }
    result = subprocess.run(
        [sys.executable, "-m", "tests.execute.sanitized", str(tmp_path)],
        env=environment, check=False, capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-4000:]
    assert result.stdout.strip() == f"{len(OPERATORS)} operators clean"
