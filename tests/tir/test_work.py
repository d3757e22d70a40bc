"""The work of loop nests: each operation where it is computed, as often as it runs there."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from microtir.tir.analysis.work import work_of
from microtir.tir.text import parse_function

NESTS: Mapping[str, tuple[str, Mapping[str, float]]] = {
    "what does not change in a loop is counted outside of it": (
        """
func f(x: int8[4], w: int8[4, 8], y: int8[4, 8]):
  for i in range(0, 4):
    for j in range(0, 8):
      y[i, j] = cast(int8, (cast(int32, x[i]) - 3) * cast(int32, w[i, j]))
""",
        {"entry": 5, "turn": 36, "load_8": 64, "add_int": 32, "mul_int": 32, "store_8": 32},
    ),
    "a sum in a register is no memory, and a product is added by an instruction": (
        """
func f(x: int8[16], w: int8[16], y: int32[1]):
  alloc sum: int32[] local
  sum[] = 5
  for i in range(0, 16):
    sum[] = sum[] + cast(int32, x[i]) * cast(int32, w[i])
  y[0] = sum[]
""",
        {"entry": 1, "turn": 16, "load_8": 32, "mla_int": 16, "store_32": 1},
    ),
    "a window at a border is smaller: of 3 taps over 8 places 22 are inside": (
        """
func f(x: float32[8], y: float32[8]):
  for i in range(0, 8):
    alloc sum: float32[] local
    sum[] = 0.0
    for k in range(max(1 - i, 0), min(9 - i, 3)):
      sum[] = sum[] + x[i + k - 1]
    y[i] = sum[]
""",
        {"entry": 1, "entry_of_some": 8, "turn": 30, "load_float": 22, "add_float": 22,
         "store_float": 8},
    ),
    "what is chosen by a loop is counted as often as it is chosen": (
        """
func f(x0: int16[6], x1: int16[2], y: int16[8]):
  for i in range(0, 8):
    if i < 6:
      y[i] = x0[i]
    else:
      y[i] = x1[i - 6]
""",
        {"entry": 1, "turn": 8, "compare_int": 8, "branch": 8, "load_16": 8, "store_16": 8},
    ),
    "rows of constants are copied by a function": (
        """
constant table: int16[2, 4] = [1, 2, 3, 4, 5, 6, 7, 8]
func f(x: int32[3], y: int16[3, 4]):
  for i in range(0, 3):
    let place: int32 = min(max(x[i], 0), 1)
    for j in range(0, 4):
      y[i, j] = table[place, j]
""",
        {"entry": 4, "turn": 3, "load_32": 3, "saturate": 3, "row": 3, "row_words": 6},
    ),
    "one of 256 values is a bit field, other ends are two comparisons": (
        """
func f(x: int32[3], y: int32[3]):
  for i in range(0, 3):
    y[i] = min(max(x[i], -128), 127) + min(max(x[i], -5), 127)
""",
        {"entry": 1, "turn": 3, "load_32": 3, "saturate": 3, "clamp": 3, "add_int": 3,
         "store_32": 3},
    ),
}  # fmt: skip


@pytest.mark.parametrize("nest", NESTS)
def test_work_is_counted_where_it_is_done(nest: str) -> None:
    """Pointers and addresses are left out here: how many there are, compilers decide."""
    text, wanted = NESTS[nest]
    counted = work_of(parse_function(text.strip()))
    assert {kind: n for kind, n in counted.items() if kind not in ("pointer", "address")} == wanted
