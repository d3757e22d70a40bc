"""Whether the instructions of a function depend on data, by what its C does on each CPU."""

from __future__ import annotations

import pytest

from microtir.config import Target
from microtir.tir import float_functions
from microtir.tir.analysis.timing import Time, causes_of, worst
from microtir.tir.ir import Intrinsic
from microtir.tir.text import parse_function

M0, M3, M4 = ("c -mcpu=cortex-m0", "c -mcpu=cortex-m3", "c -mcpu=cortex-m4")
RV32I, RV32, ZBB, AVR = (
    "c -march=rv32ic",
    "c -march=rv32imc",
    "c -march=rv32imc_zbb",
    "c -mcpu=atmega2560",
)
SUM = "cast(int32, x[i]) * 3 + 1"
BODIES = {
    SUM: {M0: Time.CONSTANT, M4: Time.CONSTANT, RV32: Time.CONSTANT, AVR: Time.CONSTANT},
    f"min({SUM}, 9)": {
        M0: Time.COMPILER,
        M4: Time.CONSTANT,
        RV32: Time.COMPILER,
        ZBB: Time.CONSTANT,
        AVR: Time.COMPILER,
    },
    "min(i * 3, 9)": {M0: Time.CONSTANT, AVR: Time.CONSTANT},
    "select(x[i] < cast(int8, 3), table[x2[i]], 0)": {M3: Time.COMPILER, M4: Time.COMPILER},
    "select(x[i] < cast(int8, 3), 7, 0)": {M0: Time.COMPILER, M4: Time.CONSTANT},
    "1 << x2[i]": {M0: Time.COMPILER, M4: Time.CONSTANT, AVR: Time.COMPILER},
    "cast(int32, cast(int64, x2[i]) * cast(int64, x[i]) >> 9)": {
        M0: Time.CONSTANT,
        M3: Time.CONSTANT,
        RV32: Time.CONSTANT,
        RV32I: Time.BOUNDED,
    },
    "cast(int32, cast(int64, x2[i]) * cast(int64, x[i]) * cast(int64, x[i]) >> 9)": {
        M0: Time.BOUNDED,
        M3: Time.CONSTANT,
    },
    "multiply_by_quantized_multiplier(x2[i], table[3], -2)": {
        M0: Time.COMPILER,
        M4: Time.CONSTANT,
        RV32I: Time.BOUNDED,
    },
    "multiply_by_reduced_multiplier(cast(int64, x2[i]), table[3], -2)": {
        M0: Time.BOUNDED,
        M4: Time.CONSTANT,
    },
    "truncdiv(100, x2[i] + 1)": {M0: Time.BOUNDED, M4: Time.CONSTANT},
}


@pytest.mark.parametrize("value", BODIES)
def test_values(value: str) -> None:
    """A value depends on data where its C branches, on the CPUs that must."""
    function = parse_function(f"""
func f(x: int8[8], x2: int32[8], table: int32[8], y: int32[8]):
  for i in range(0, 8):
    y[i] = {value}
""")
    for target, expected in BODIES[value].items():
        causes = causes_of(function, Target(target), None)
        assert worst(cause.time for cause in causes) is expected, (target, causes)


@pytest.mark.parametrize(
    ("loop", "time", "what"),
    [
        ("for k in range(0, n):\n      y[k] = 1", Time.BOUNDED, "data, 8 at most"),
        ("if n < 3:\n      y[0] = 1", Time.BOUNDED, "a condition on data"),
    ],
)
def test_control_flow_that_follows_from_data(loop: str, time: Time, what: str) -> None:
    """Names of loaded values carry data; a loop has the bound that its extent has."""
    function = parse_function(f"""
func f(x: int32[8], y: int32[8]):
  for i in range(0, 8):
    let n: int32 = min(max(x[i], 0), 8)
    {loop}
""")
    causes = causes_of(function, Target(M4), None)
    assert worst(cause.time for cause in causes) is time
    assert any(what in cause.what for cause in causes)


def test_floats_without_an_fpu_are_calls() -> None:
    """A library adds floats on an M3, an instruction does on an M4; expf is a call on both."""
    text = """
func f(x: float32[8], y: float32[8]):
  for i in range(0, 8):
    y[i] = {}
"""
    added = parse_function(text.format("x[i] + 1.0"))
    assert [c.time for c in causes_of(added, Target(M3), None)] == [Time.BOUNDED]
    assert causes_of(added, Target(M4), None) == ()
    called = parse_function(text.format("exp(x[i])"))
    assert [c.what for c in causes_of(called, Target(M4), None)] == ["the function 'exp'"]


@pytest.mark.parametrize("form", dict.fromkeys(float_functions.OWN.values()))
def test_forms_of_float_functions_return_early(form: Intrinsic) -> None:
    """Special values and ranges are branches of their C, on a CPU with an FPU, too."""
    values = "x[i], x[i]" if form in float_functions.OF_TWO else "x[i]"
    function = parse_function(f"""
func f(x: float32[8], y: float32[8]):
  for i in range(0, 8):
    y[i] = {form.value}({values})
""")
    causes = causes_of(function, Target(M4), None)
    assert [cause.what for cause in causes] == [f"the function '{form.value}'"]


MASKED = {
    f"min({SUM}, 9)": Time.CONSTANT,
    "select(x[i] < cast(int8, 3), 7, 0)": Time.CONSTANT,
    "select(x[i] < cast(int8, 3), table[x2[i]], 0)": Time.COMPILER,
    "1 << x2[i]": Time.CONSTANT,
    "cast(int32, cast(int64, x2[i]) * cast(int64, x[i]) >> 9)": Time.CONSTANT,
    "truncdiv(x2[i], 8)": Time.CONSTANT,
    "truncdiv(100, x2[i] + 1)": Time.BOUNDED,
    "multiply_by_quantized_multiplier(x2[i], table[3], -2)": Time.CONSTANT,
    "multiply_by_quantized_multiplier(x2[i], 1 << 30, x2[i + 0])": Time.COMPILER,
}


@pytest.mark.parametrize("value", MASKED)
def test_masks(value: str) -> None:
    """Where choices are to take constant time, an M0 computes them by masks; an AVR cannot."""
    function = parse_function(f"""
func f(x: int8[8], x2: int32[8], table: int32[8], y: int32[8]):
  for i in range(0, 8):
    y[i] = {value}
""")
    causes = causes_of(function, Target(M0), None, constant_time=True)
    assert worst(cause.time for cause in causes) is MASKED[value], causes
    on_avr = causes_of(function, Target(AVR), None, constant_time=True)
    assert on_avr == causes_of(function, Target(AVR), None)
