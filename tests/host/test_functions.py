"""Functions of a user's program, called with numpy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from microtir import host
from microtir.errors import RunError, UsageError
from tests.support.programs import artifact_of, matmul_module

A = np.arange(12, dtype=np.float32).reshape(3, 4)
B = np.arange(12, dtype=np.float32).reshape(4, 3) / 7


@pytest.fixture(scope="module", params=[False, True], ids=["library", "sanitized"])
def program(request: pytest.FixtureRequest) -> host.Model:
    """Return the matrix product, compiled in both ways."""
    return host.load(artifact_of(matmul_module()), sanitize=request.param)


def test_call(program: host.Model) -> None:
    """Arrays that the function writes are changed in place."""
    c = np.full((3, 3), 99, np.float32)
    program["matmul"](A, B, c, 3)
    np.testing.assert_allclose(c, A @ B, rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((A, B, np.zeros((3, 3), np.float32)), r"3 arguments for 4 parameters"),
        ((A, B, np.zeros((3, 3), np.float32), 4), r"argument 'a' got float32\[3, 4\]"),
        ((A, B, np.zeros((3, 3), np.float64), 3), r"argument 'c' got float64\[3, 3\]"),
        ((A, B, np.zeros((3, 3), np.float32), A), r"argument 'n' got ndarray"),
        ((3, B, np.zeros((3, 3), np.float32), 3), r"argument 'a' got int"),
        ((A, B.T.copy().T, np.zeros((3, 3), np.float32), 3), r"argument 'b' is not contiguous"),
        ((A, B, np.zeros((3, 3), np.float32), 2**40), r"'n' got 1099511627776"),
    ],
)
def test_wrong_arguments(program: host.Model, arguments: tuple[Any, ...], message: str) -> None:
    """An argument that does not fit is refused with the function's signature."""
    with pytest.raises(RunError, match=message) as caught:
        program["matmul"](*arguments)
    assert "matmul(a: float32[n, 4], b: float32[4, 3], c: float32[n, 3], n: int32 1..8)" in str(
        caught.value
    )


def test_read_only_result(program: host.Model) -> None:
    """An array that the function would write must be writeable."""
    c = np.zeros((3, 3), np.float32)
    c.flags.writeable = False
    with pytest.raises(RunError, match="'c' is written by the function"):
        program["matmul"](A, B, c, 3)


def test_range_is_checked_in_c(program: host.Model) -> None:
    """An integer outside its declared range is refused by the C code, with its sentence."""
    a, c = np.zeros((9, 4), np.float32), np.zeros((9, 3), np.float32)
    with pytest.raises(RunError, match="status -3: an integer argument is out of range"):
        program["matmul"](a, B, c, 9)


def test_unknown_function(program: host.Model) -> None:
    """A misspelt name is answered with the nearest one."""
    with pytest.raises(UsageError, match="did you mean 'matmul'"):
        program["matmull"]
