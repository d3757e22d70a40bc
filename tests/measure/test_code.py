"""What is written in a function counts with the values that its calls state."""

from __future__ import annotations

from microtir.measure import Functions
from microtir.measure.code import written_in
from microtir.tir.ir import PrimFunc
from microtir.tir.text import parse

ROWS = """
func layer(x: int32[4], y: int32[4], start: int32, stop: int32, shift: int32):
  for i in range(start, stop):
    y[i] = multiply_by_quantized_multiplier(x[i], 1073741824, shift)

func main(x: int32[4], y: int32[4]):
  alloc w: int32[4] workspace
  invoke layer(view(x, int32[4], 0), view(w, int32[4], 0), {})
  invoke layer(view(w, int32[4], 0), view(y, int32[4], 0), {})
"""
RESCALES = "multiply_by_quantized_multiplier"


def _written(first: str, second: str) -> dict[str, int]:
    """Return what is written in a layer that is called with these values."""
    functions: tuple[PrimFunc, ...] = parse(ROWS.format(first, second))
    return written_in(Functions.of(functions, is_model=True), functions[0])


def test_a_shift_that_every_call_states() -> None:
    """Compilers know its sign where all calls agree, and have no code for the other one."""
    for shifts, kind in (
        (("-3", "-5"), RESCALES),
        (("0", "0"), f"{RESCALES}_0"),
        (("2", "1"), f"{RESCALES}_left"),
        (("-3", "0"), f"{RESCALES}_by"),
        (("-3", "1"), f"{RESCALES}_by"),
    ):
        work = _written(*(f"0, 4, {shift}" for shift in shifts))
        assert [k for k in work if k.startswith(RESCALES)] == [kind]


def test_a_loop_of_one_iteration_is_none() -> None:
    """Where every call is for one row there is no loop, whichever row that is."""
    assert _written("0, 1, -3", "0, 1, -3")["entry"] == 0
    assert _written("0, 1, -3", "3, 4, -3")["entry"] == 0
    assert _written("0, 1, -3", "0, 4, -3")["entry"] == 1


def test_a_library_states_no_values() -> None:
    """Functions that an application calls get whatever it gives them."""
    functions = parse(ROWS.format("0, 1, -3", "0, 1, -3"))
    work = written_in(Functions.of(functions, is_model=False), functions[0])
    assert work["entry"] == 1 and work[f"{RESCALES}_by"] == 1
