"""The replay check finds changed meanings, and says when it could not look."""

from __future__ import annotations

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.errors import TirError
from microtir.tir.replay import ReplayOutcome, check_pass, estimate_steps, random_array
from microtir.tir.text import parse_function

ROWS = """
func f(x: int8[64, 4], y: int8[64, 4], y0: int32 in 0..64, y1: int32 in 0..64):
  row_range y0 y1
  for r in range(y0, y1):
    for c in range(0, 4):
      y[r, c] = x[{row}, c]
"""


def rows(row: str = "r") -> str:
    """A copy of rows, right or wrong."""
    return ROWS.format(row=row)


def test_equal_functions_pass() -> None:
    """Functions that store the same are equal; all rows are run where that is short."""
    result = check_pass(parse_function(rows()), parse_function(rows("r + 0")))
    assert result.outcome is ReplayOutcome.EQUAL
    assert result.steps == 1 + 64 + 64 * 4


def test_the_same_object_is_not_run() -> None:
    """A pass that changed nothing costs nothing."""
    func = parse_function(rows())
    assert check_pass(func, func).steps == 0


@pytest.mark.parametrize("row", ["min(r + 1, 63)", "max(r, 1)", "min(r, 62)"])
def test_a_changed_meaning_is_found(row: str) -> None:
    """The error names pass, function, output and element; borders are always among the rows."""
    with pytest.raises(TirError, match=r"function 'f': pass 'shift' changed .* 'y' at \(\d+, \d"):
        check_pass(parse_function(rows()), parse_function(rows(row)), "shift", max_steps=100)


def test_an_added_error_is_found() -> None:
    """A pass may not make a function undefined."""
    with pytest.raises(TirError, match="pass 'shift' made the function undefined"):
        check_pass(parse_function(rows()), parse_function(rows("r + 1")), "shift")


def test_rows_are_reduced_to_stay_short() -> None:
    """Windows at the top, in the middle and at the bottom share the allowed steps."""
    result = check_pass(parse_function(rows()), parse_function(rows("r + 0")), max_steps=60)
    assert result.outcome is ReplayOutcome.EQUAL
    assert 0 < result.steps <= 60


def test_long_functions_are_skipped_with_an_estimate() -> None:
    """What cannot be made short enough is reported, not passed over."""
    text = "func f(x: int32[4]):\n  for i in range(0, 1000):\n    x[0] = {}"
    before, after = (parse_function(text.format(v)) for v in ("1", "2"))
    result = check_pass(before, after, max_steps=100)
    assert result.outcome is ReplayOutcome.SKIPPED
    assert result.steps == 1001
    assert result.reason == "about 1001 steps, 100 allowed"


def test_loops_with_loaded_bounds_are_stopped_by_the_limit() -> None:
    """Where the number of steps depends on the data the run itself is limited."""
    text = "func f(x: int32[4]):\n  for i in range(0, 1000 + x[0]):\n    x[1] = {}"
    before, after = (parse_function(text.format(v)) for v in ("1", "1 + 0"))
    result = check_pass(before, after, max_steps=100)
    assert result.outcome is ReplayOutcome.SKIPPED
    assert "more than 100 steps" in result.reason


def test_functions_without_meaning_are_skipped_with_the_reason() -> None:
    """A function that is undefined on all inputs that were tried cannot be compared."""
    before, after = (
        parse_function(f"func f(x: int32[4]):\n  x[{i}] = 1\n  x[0] = 1") for i in (4, 5)
    )
    result = check_pass(before, after)
    assert result.outcome is ReplayOutcome.SKIPPED
    assert "undefined before the pass" in result.reason


def test_indices_in_inputs_get_smaller_until_they_fit() -> None:
    """A gather runs although random indices do not fit at first."""
    text = """
func f(x: int32[4], ids: int32[2], y: int32[2], n: int32 in 1..1000):
  for i in range(0, 2):
    y[i] = x[ids[i] {}]
"""
    before, same, other = (parse_function(text.format(t)) for t in ("+ 1", "+ 1 + 0", "* 0"))
    assert check_pass(before, same).outcome is ReplayOutcome.EQUAL
    with pytest.raises(TirError, match=r"changed a result for .*9"):
        check_pass(before, other)


def test_estimate_follows_the_loops() -> None:
    """The estimate multiplies the longest ranges of nested loops."""
    func = parse_function("""
func f(x: int32[4], n: int32 in 0..9):
  let m: int32 = n * 2
  alloc t: int32[] local
  t[] = 0
  for i in range(0, m):
    if i > 3:
      x[0] = 1
      x[1] = 1
    else:
      x[2] = 1
  for i in range(4, 2):
    x[0] = 1
""")
    assert estimate_steps(func, {func.params[1]: 5}) == 1 + 10  # type: ignore[dict-item]


def test_random_arrays_keep_to_their_limit() -> None:
    """Integers lie in the limit and the type, floats in [-2, 2]."""
    generator = np.random.default_rng(0)
    assert np.abs(random_array(generator, (50,), DType.INT32, 3)).max() == 3
    assert random_array(generator, (500,), DType.UINT8).max() > 250
    assert random_array(generator, (50,), DType.UINT8, 3).min() == 0
    assert np.abs(random_array(generator, (50,), DType.FLOAT32)).max() <= 2
    assert set(random_array(generator, (50,), DType.BOOL).tolist()) == {True, False}
