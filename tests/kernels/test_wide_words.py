"""Wide sums of Helium, in two parts, are rescaled as tflite-micro rescales their 64 bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir import te
from microtir.dtype import DType
from microtir.kernels.arm_mve.gemm_kernels import PIXELS, UNROLL, gemm
from microtir.kernels.arm_mve.requantise import WIDE_WORDS, Rescaling16, wide_constants
from microtir.kernels.common.finish_s16 import Finish16, Sums
from microtir.operators.common.linear import LinearParams
from microtir.operators.common.multiplier import QuantizedMultiplier
from microtir.tir import ir
from microtir.tir.interpreter import Interpreter
from tests.kernels.test_finish_s16 import INPUTS, made, reference

_LARGEST = INPUTS * 127 * 32768
_NUMBERS = ("repeats", "turns", "cuts", "turns_of_part")
_STEPS = 31  # of eight products, which with a lower part of 30 bits are less than 2^31


def _stored(form: Rescaling16, constants: list[int], sums: list[int]) -> list[int]:
    """Return what the sequence makes of sums of products, by the interpreter."""
    x = te.placeholder((len(sums),), DType.INT64, "x")
    table = te.placeholder((WIDE_WORDS,), DType.INT32, "table")
    factors = [table[n] for n in range(1, WIDE_WORDS)]
    y = te.compute(
        (len(sums),), lambda i: form.apply(x[i] + te.cast(DType.INT64, table[0]), factors), "y"
    )
    function: ir.PrimFunc = te.create_prim_func([x, table, y], "f", y)
    results = np.zeros(len(sums), np.int16)
    words = np.array(constants, np.int32)
    Interpreter([function]).run("f", [np.array(sums, np.int64), words, results])
    return [int(v) for v in results]


def _in_parts(form: Rescaling16, words: list[int], parts: list[int]) -> int:
    """Return the upper word of a product as the assembly has it: in words of 32 bits."""
    lower, multiplier, _, constant = words
    upper, bits = 0, form.bits
    for number, part in enumerate(parts):
        if number:
            upper += lower >> bits
            lower &= (1 << bits) - 1
        lower += part
        assert -(1 << 31) <= lower < 1 << 31
    high = ((lower * multiplier) >> 32) + upper * (multiplier >> (32 - bits)) + constant
    assert -(1 << 31) <= high < 1 << 31
    return high


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1 << 30, (1 << 31) - 1), st.integers(-31, 0), st.integers(0, 44),
    st.integers(0, 2**32),
)  # fmt: skip
def test_parts_equal_the_definition(multiplier: int, shift: int, bits: int, seed: int) -> None:
    """For ties, extremes and random sums, at once and in parts."""
    factor = QuantizedMultiplier(multiplier, shift)
    params = LinearParams(0, 0, (factor,), -32768, 32767)
    rng = np.random.default_rng(seed)
    bias = int(rng.integers(-(1 << bits), 1 << bits))
    found = made(params, bias, wide=True)
    if found is None:
        assert shift >= -5 or bits > 34
        return
    constants, cut = wide_constants(found[1], _LARGEST)
    if constants is None:
        assert bits > 40
        return
    form, words = Rescaling16(found[0], cut), [int(n) for n in constants[0]]
    assert cut, "products alone leave 32 bits"
    most = _STEPS << 25
    parts = rng.integers(-most, most + 1, 6).tolist()
    sums = [-_LARGEST, _LARGEST, 0, *rng.integers(-_LARGEST, _LARGEST, 20).tolist()]
    assert _stored(form, words, sums) == [reference(s + bias, factor, params) for s in sums]
    if abs(sum(parts)) <= _LARGEST:
        total, m = sum(parts), words[1]
        assert _in_parts(form, words, parts) == ((total + bias) * m) >> 32


@pytest.mark.parametrize("pixels", [1, PIXELS])
def test_sums_are_cut_before_they_leave_32_bits(pixels: int) -> None:
    """Of any length: what is printed in front of the loop and behind it counts, too."""
    form = Rescaling16(Finish16(Sums.WIDE, -32768, 32767), 30)
    for values in range(256, 1300):
        kernel = gemm(pixels, values, values, 4, form).meaning.kernel
        assert kernel is not None
        assert kernel.native is not None
        given = {name: int(str(kernel.native.values[name])) for name in _NUMBERS}
        before, turns, cuts, others = (given[name] for name in _NUMBERS)
        rest = int(values % 8 > 0)
        steps = before + (turns + cuts * others) * UNROLL.turn + rest
        assert steps == -(-values // 8)
        assert cuts > 0
        assert before + turns * UNROLL.turn <= _STEPS
        assert others * UNROLL.turn + rest <= _STEPS
