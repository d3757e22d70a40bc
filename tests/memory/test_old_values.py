"""What a call needs of a parameter that it writes: what was there before, or only its own."""

from __future__ import annotations

import pytest

from microtir.memory.trace import keeps_old_values
from microtir.tir.text import parse_function

HEAD = "func layer(x: int8[4], y: int8[4], z: int8[4]):\n"
OWN = """
  for i in range(0, 4):
    y[i] = x[i]
  for t in range(0, 3):
    for j in range(0, 4):
      z[j] = y[3 - j]
    for k in range(0, 4):
      y[k] = z[k]
"""
OLD = {
    "read before it is written": "  for i in range(0, 4):\n    y[i] = y[i]\n",
    "one element is missing": """
  for i in range(0, 3):
    y[i] = x[i]
  for j in range(0, 4):
    z[j] = y[j]
""",
    "read ahead of what is written": """
  for i in range(0, 3):
    y[i] = x[i]
    z[i] = y[i + 1]
""",
    "written on a condition": """
  for i in range(0, 4):
    if x[i] > 0:
      y[i] = x[i]
  for j in range(0, 4):
    z[j] = y[j]
""",
}


def old(body: str) -> list[str]:
    """The names of the parameters that keep something."""
    return [buffer.name for buffer in keeps_old_values(parse_function(HEAD + body), ())]


def test_what_a_call_has_written_is_its_own() -> None:
    """Both outputs are filled before they are read, one of them in the loop that reads it."""
    assert not old(OWN)


@pytest.mark.parametrize("case", OLD)
def test_what_a_call_has_not_surely_written_was_there_before(case: str) -> None:
    """A single element that may not be written is enough."""
    assert old(OLD[case]) == ["y"]
