"""Sums that ONNX rescales in float32 are rescaled by integers, to the bit, or by floats."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from microtir.kernels import candidates
from microtir.kernels.common.requantise import (
    BIAS,
    MULTIPLIER,
    ROUNDING,
    SHIFT,
    Ints,
    requantisation,
)
from microtir.operators.common.linear import LinearParams, rescaled_in_float
from microtir.operators.common.multiplier import QuantizedMultiplier
from microtir.rewrite.reference import execute
from microtir.tir.interpreter import Interpreter
from microtir.tir.ir import PrimFunc
from tests.support.dsp_cases import in_float_rescaling
from tests.support.kernel_cases import M4, emitted, found, planned

_INT32 = 1 << 31
UNUSED = QuantizedMultiplier(1 << 30, 0)
KERNELS = (
    "conv_s8_2x4_dsp", "conv_s8_2x4_dsp_bytes", "conv_s8_1x8_dsp_bytes", "conv_s8_8x1_dsp",
    "conv_s8_4x2_dsp", "conv_s8_4x2_c", "conv_s8_4x4_c", "conv_s8_4x4_zbb", "dwconv_s8_4x1_dsp",
    "dwconv_s8_2x4_dsp", "dwconv_s8_1x4_dsp", "dwconv_s8_1x4_dsp_rows", "dwconv_s8_4x1_c",
    "dwconv_s8_6x1_zbb", "dwconv_s8_4x1_dsp_windows",
)  # fmt: skip


def float32(low: float, high: float) -> st.SearchStrategy[float]:
    """Floats of 32 bits: of few bits, whose products are exact ties, and of any."""
    logs = st.floats(float(np.log(low)), float(np.log(high)))
    few = st.builds(lambda n, s: n * 2.0**-s, st.integers(1, 99), st.integers(8, 16))
    any_ = logs.map(lambda log: float(np.float32(np.exp(log))))
    return st.one_of(any_, few.filter(lambda f: low < f < high))


def near_ties(factor: float) -> Ints:
    """Sums whose products with a factor are near the middle of two integers."""
    middle = np.rint((np.arange(-256, 257) + 0.5) / factor).astype(np.int64)
    return np.concatenate([middle + n for n in range(-2, 3)])


@settings(max_examples=300, deadline=None)
@given(
    st.lists(float32(1e-5, 0.99), min_size=1, max_size=3), st.integers(-128, 127), st.booleans(),
    st.integers(-(1 << 22), 1 << 22), st.integers(1, 1 << 24), st.integers(0, 1 << 32),
)  # fmt: skip
@example([0.0030262130312621593], -128, False, -1, 1 << 24, 0)
def test_integers_equal_float32(
    factors: list[float], zero_point: int, relu: bool, bias: int, largest: int, seed: int
) -> None:
    """At ties, at both ends and between: for every sum, with words that stay below 32 bits."""
    low = zero_point if relu else -128
    params = LinearParams(0, zero_point, (UNUSED,) * len(factors), low, 127, tuple(factors))
    biases = np.full(len(factors), bias, np.int64)
    made = requantisation(params, biases, np.full(len(factors), largest, np.int64))
    if made is None or made.rescaling.in_float:
        return
    rng = np.random.default_rng(seed)
    for channel, (factor, row) in enumerate(zip(factors, made.constants.tolist(), strict=True)):
        drawn = rng.integers(bias - largest, bias + largest + 1, 999)
        totals = np.concatenate([near_ties(factor), drawn, [bias - largest, bias + largest]])
        totals = totals[np.abs(totals - bias) <= largest]
        doubled = 2 * (totals - bias) + row[BIAS]
        high = (doubled * row[MULTIPLIER] + _INT32) >> 32
        assert np.abs(doubled).max() < _INT32 and np.abs(high + row[ROUNDING]).max() < _INT32
        assert made.rescaling.shift in (None, row[SHIFT]) and not made.rescaling.corrects_ties
        got = np.clip((high + row[ROUNDING]) >> row[SHIFT], low, 127)
        columns = np.repeat(totals[:, np.newaxis], len(factors), axis=1)
        np.testing.assert_array_equal(got, rescaled_in_float(columns, params)[:, channel])


def test_most_factors_have_integers() -> None:
    """Of random factors as layers have them nearly all do: else kernels are of no use."""
    rng = np.random.default_rng(0)
    factors = np.exp(rng.uniform(np.log(1e-3), np.log(0.05), 200)).astype(np.float32)
    params = [LinearParams(0, -128, (UNUSED,), -128, 127, (f,)) for f in factors.tolist()]
    one = np.array([500], np.int64)
    made = [requantisation(p, one, np.array([300_000], np.int64)) for p in params]
    assert sum(m is not None and not m.rescaling.in_float for m in made) > 170


def test_constant_channels_fit_whatever_their_bias() -> None:
    """Dead channels have tiny factors and huge biases; beside integers and beside floats."""
    for factor in (0.0037, 0.125):
        params = LinearParams(0, 3, (UNUSED,) * 2, -128, 127, (factor, 2.0**-26))
        biases, largest = np.array([5, 1 << 30], np.int64), np.array([3000, 3000], np.int64)
        made = requantisation(params, biases, largest)
        assert made is not None and made.rescaling.in_float == (factor == 0.125)
        bias, multiplier, rounding, shift = made.constants[1].tolist()
        assert (bias, multiplier) == (0, 0) and rounding >> shift == 16 + 3


def test_ties_in_a_row_are_floats() -> None:
    """Odd multiples of an exact tie go to the even side in turn: no line does, the FPU does."""
    params = LinearParams(0, 0, (UNUSED,), -128, 127, (0.125,))
    made = requantisation(params, np.zeros(1, np.int64), np.array([2000], np.int64))
    assert made is not None and made.rescaling.in_float
    assert made.constants.view(np.float32)[0, MULTIPLIER] == 0.0625


def scratch(function: PrimFunc) -> list[Ints]:
    """The memory that a layer function asks for, filled with something."""
    if function.scratch is None:
        return []
    shape = tuple(n for n in function.scratch.shape if isinstance(n, int))
    return [np.full(shape, 77, function.scratch.dtype.value)]


@pytest.mark.parametrize("has_ties", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_equal_the_reference(kernel: str, has_ties: bool) -> None:
    """Random layers that a kernel takes have it for float32, too, with integers and with floats."""
    made = 0
    for case, _ in found(kernel):
        in_float = in_float_rescaling(case, has_ties=has_ties)
        operator = planned(in_float, kernel)
        if operator is None:
            continue
        made += 1
        y = np.zeros(in_float.graph.outputs[0].shape, np.int8)
        function, rows = emitted(operator, {}), operator.node.output.type.rows
        Interpreter([function]).run("layer", [*in_float.inputs, y, *scratch(function), 0, rows])
        want = execute(in_float.graph, in_float.named_inputs())["y"]
        np.testing.assert_array_equal(y, want, err_msg=case.name)
        if made == 2:
            return
    raise AssertionError(f"{kernel}: {made} layers")


def test_cores_without_an_fpu_take_no_floats_in_assembly() -> None:
    """They take the kernels of the DSP extension where integers do, else blocks of plain C."""
    kernel, offered = "conv_s8_2x4_dsp", set()
    for has_ties in (False, True):
        for case, _ in found(kernel):
            node = in_float_rescaling(case, has_ties=has_ties).graph.nodes[0]
            names = [
                {candidate.kernel for candidate in candidates(node, M4.with_(targets=target))}
                for target in ("c -mcpu=cortex-m4", "c -mcpu=cortex-m4+nofp")
            ]
            assert all("conv_s8_4x2_c" in some for some in names)
            offered.add((has_ties, kernel in names[0], kernel in names[1]))
    assert {(False, True, True), (True, True, False)} <= offered
    assert (False, False, True) not in offered and (True, False, True) not in offered
