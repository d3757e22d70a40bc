"""The short requantisation gives TFLite's result for every accumulator."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir import te
from microtir.dtype import DType
from microtir.kernels.common.requantise import WORDS, Ints, requantisation
from microtir.operators.common.linear import LinearParams
from microtir.operators.common.multiplier import QuantizedMultiplier
from microtir.tir import ir
from microtir.tir.interpreter import Interpreter
from microtir.tir.intrinsics import multiply_by_quantized_multiplier


def reference(accumulator: int, factor: QuantizedMultiplier, params: LinearParams) -> int:
    """TFLite's definition: round twice, add the zero point, clamp."""
    scaled = multiply_by_quantized_multiplier(accumulator, *factor) + params.output_zero_point
    return max(params.activation_min, min(params.activation_max, scaled))


def ties(factor: QuantizedMultiplier) -> list[int]:
    """Accumulators whose scaled values lie on or next to a tie, negative ones included."""
    if factor.multiplier == 0 or factor.shift < -24:
        return []
    near = []
    for half in range(-9, 10, 2):
        exact = half * 2 ** (30 - factor.shift) // factor.multiplier
        near += [exact - 1, exact, exact + 1]
    return near


def stored(params: LinearParams, bias: int, largest: int, sums: list[int]) -> list[int] | None:
    """Results of the sequence for sums of products, by the interpreter; None if it is refused."""
    one: Ints = np.array([bias], np.int64)
    made = requantisation(params, one, np.array([largest], np.int64))
    if made is None:
        return None
    assert made.constants.shape == (1, WORDS)
    x = te.placeholder((len(sums),), DType.INT32, "x")
    table = ir.Buffer("c", (1, WORDS), DType.INT32, ir.Scope.CONSTANT, made.constants)
    y = te.compute((len(sums),), lambda i: made.rescaling.apply(x[i] * 2, table, 0), "y")
    function = te.create_prim_func([x, y], "f", y)
    results = np.zeros(len(sums), np.int8)
    Interpreter([function]).run("f", [np.array(sums, np.int32), results])
    return [int(v) for v in results]


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1 << 30, (1 << 31) - 1), st.integers(-31, 0), st.integers(-128, 127),
    st.booleans(), st.integers(-100_000, 100_000), st.integers(0, 2**32),
)  # fmt: skip
def test_sequence_equals_double_rounding(
    multiplier: int, shift: int, zero_point: int, relu: bool, bias: int, seed: int
) -> None:
    """For ties, extremes and random sums, with and without the clamp that hides ties."""
    factor = QuantizedMultiplier(multiplier, shift)
    low = zero_point if relu else -128
    params = LinearParams(0, zero_point, (factor,), low, 127)
    rng = np.random.default_rng(seed)
    largest = 1 << 22
    sums = [t - bias for t in ties(factor) if abs(t - bias) <= largest]
    sums += [-largest, largest, 0, -bias, *rng.integers(-largest, largest, 20).tolist()]
    got = stored(params, bias, largest, sums)
    if got is None:
        # Only without a clamp at the zero point, and then only for a shift of 0, is it refused.
        assert not relu and shift == 0 and zero_point > -128
        return
    assert got == [reference(s + bias, factor, params) for s in sums]


def test_what_does_not_fit_is_refused() -> None:
    """Left shifts and accumulators beyond 30 bits take another kernel."""
    for factor, bias, largest in (
        ((1 << 30, 1), 0, 1000),
        ((1 << 30, -3), 0, 1 << 30),
        ((1 << 30, -25), 1 << 30, 1 << 29),
    ):
        params = LinearParams(0, -128, (QuantizedMultiplier(*factor),), -128, 127)
        assert stored(params, bias, largest, [1]) is None


@settings(max_examples=60, deadline=None)
@given(st.integers(2000 - 2**31, 2**31 - 2000), st.integers(-31, -20), st.integers(-128, 127))
def test_constant_channels_fit_whatever_their_bias(bias: int, shift: int, zero_point: int) -> None:
    """Dead channels have tiny scales and huge biases; their one result comes out."""
    factor = QuantizedMultiplier(1 << 30, shift)
    params = LinearParams(0, zero_point, (factor,), -128, 127)
    ends = [reference(bias + s, factor, params) for s in (-1000, 1000)]
    if ends[0] == ends[1]:
        assert stored(params, bias, 1000, [-1000, 0, 1000]) == [ends[0]] * 3
