"""What a call needs of a parameter that it writes: what was there before, or only its own."""

from __future__ import annotations

import pytest

from microtir.dtype import DType
from microtir.errors import MemoryPlanError
from microtir.memory.checker import check
from microtir.memory.place import relocate
from microtir.memory.trace import keeps_old_values
from microtir.tir.ir import Allocate, Buffer, BufferView, IntImm, Invoke, PrimFunc, Scope
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


ROWS = """
func layer(x: int8[2, 2], y: int8[2, 2], y0: int32 in 0..2, y1: int32 in 0..2):
  row_range y0 y1
  rows x 1 0 1 2
  rows y 1 0 1 2
  for row in range(y0, y1):
    for n in range(0, 2):
      y[row, n] = x[row, n]
    for m in range(0, 2):
      y[row, m] = y[{read}, 1 - m]
"""


@pytest.mark.parametrize(("read", "accepted"), [("row", True), ("1 - row", False)])
def test_a_row_may_read_what_it_has_written(read: str, accepted: bool) -> None:
    """And no other row of its output, which nobody has written yet."""
    layer = parse_function(ROWS.format(read=read))
    x, y = Buffer("x", (2, 2), DType.INT8), Buffer("y", (4,), DType.INT8, Scope.WORKSPACE)
    views = [BufferView(buffer, (2, 2), DType.INT8) for buffer in (x, y)]
    call = Invoke("layer", (*views, IntImm(0), IntImm(2)))
    main = PrimFunc("main", (x,), Allocate(y, call))
    placed = relocate(main, [Buffer("workspace", (4,), DType.UINT8)], {y: (0, 0)})
    if accepted:
        check(main, placed, {"layer": layer}, [4])
        return
    with pytest.raises(MemoryPlanError, match="nobody wrote it"):
        check(main, placed, {"layer": layer}, [4])
