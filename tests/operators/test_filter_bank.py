"""Operators that make features of spectra: meaning, TIR, C and tflite-micro are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.config import CompilationConfig, Executor
from microtir.graph.ir import Array
from tests.frontend.models import refusal
from tests.support.seeds import seeds
from tests.support.signals import (
    SignalModel,
    Steps,
    assert_equal,
    by_c,
    by_interpreter,
    by_meaning,
    by_oracle,
    one,
    steps_of,
)

I16, I32, U32, U64 = np.int16, np.int32, np.uint32, np.uint64
RUNS = 50
SEEDS = st.integers(0, 1 << 30)


def tables(rng: np.random.Generator, frequencies: int, channels: int) -> list[Array]:
    """Weights and bands in any place, some of them empty."""
    count = int(rng.integers(1, 40))
    weights, rests = (rng.integers(0, 1 << 15, count) for _ in range(2))
    widths = rng.integers(0, min(count, frequencies) + 1, channels + 1)
    starts = [rng.integers(0, frequencies - width + 1) for width in widths]
    firsts = [rng.integers(0, count - width + 1) for width in widths]
    return [np.array(t).astype(I16) for t in (weights, rests, starts, firsts, widths)]


def filter_bank(frequencies: int, channels: int, constants: list[Array]) -> SignalModel:
    """A model of SignalFilterBank."""
    operands = [((frequencies,), U32, None), *((table.shape, I16, table) for table in constants)]
    options = {"num_channels": channels}
    return one("SignalFilterBank", options, operands, ((channels,), U64))


def square_root(size: int) -> SignalModel:
    """A model of SignalFilterBankSquareRoot."""
    operands = [((size,), U64, None), ((), I32, None)]
    return one("SignalFilterBankSquareRoot", {}, operands, ((size,), U32))


SUBTRACTION = {
    "alternate_one_minus_smoothing": 15564,
    "alternate_smoothing": 820,
    "clamping": False,
    "min_signal_remaining": 819,
    "num_channels": 6,
    "one_minus_smoothing": 15974,
    "smoothing": 410,
    "smoothing_bits": 10,
    "spectral_subtraction_bits": 14,
}


def subtraction(options: dict[str, Any], size: int) -> SignalModel:
    """A model of SignalFilterBankSpectralSubtraction."""
    results = ((size,), U32), ((size,), U32)
    code = "SignalFilterBankSpectralSubtraction"
    return one(code, options, [((size,), U32, None)], *results)


def pcan(size: int, shift: int, table: Array) -> SignalModel:
    """A model of SignalPCAN."""
    operands = [((size,), U32, None), ((size,), U32, None), (table.shape, I16, table)]
    return one("SignalPCAN", {"snr_shift": shift}, operands, ((size,), U32))


def logarithm(size: int, shift: int, scale: int) -> SignalModel:
    """A model of SignalFilterBankLog."""
    options = {"input_correction_bits": shift, "output_scale": scale}
    return one("SignalFilterBankLog", options, [((size,), U32, None)], ((size,), I16))


def check(model: SignalModel, steps: Steps, what: object) -> None:
    """Compare tflite-micro with the meaning, and a few runs of the function in TIR."""
    want = by_oracle(model, steps)
    assert_equal(by_meaning(model, steps), want, what)
    assert_equal(by_interpreter(model, steps[:4]), want[:4], what)


@pytest.mark.tools
@given(st.integers(1, 30), st.integers(1, 12), SEEDS)
@settings(max_examples=30, deadline=None)
def test_filter_banks_equal_tflite_micro(frequencies: int, channels: int, seed: int) -> None:
    """Bands in any order that overlap in any way."""
    rng = np.random.default_rng(seed)
    model = filter_bank(frequencies, channels, tables(rng, frequencies, channels))
    check(model, steps_of(model, rng, 6), (frequencies, channels, seed))


EDGES = [1, 2, 3, 255, 256, 65534, 65535, 65536, (1 << 32) - 2, (1 << 32) - 1]


def roots(rng: np.random.Generator, count: int) -> Steps:
    """Numbers around squares and halfway between them, of all sizes, and shifts."""
    steps: Steps = []
    for _ in range(count):
        root = int(rng.choice(EDGES)) if rng.random() < 0.5 else int(rng.integers(1, 1 << 32))
        root >>= int(rng.integers(0, 20)) if rng.random() < 0.5 else 0
        near = [root * root + d for d in (-1, 0, 1, root, root + 1, 2 * root)]
        values = [min(max(n, 0), (1 << 64) - 1) for n in near] + [0, (1 << 64) - 1]
        steps.append([np.array(values, U64), np.array(rng.integers(0, 16), I32)])
    return steps


@pytest.mark.tools
@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_roots_equal_tflite_micro(seed: int) -> None:
    """Rounded up from the middle on, except for the largest root of 32 bits and of 64."""
    check(square_root(8), roots(np.random.default_rng(seed), 20), seed)


@pytest.mark.tools
@given(st.integers(1, 9), st.booleans(), st.integers(0, 31), st.integers(0, 40), SEEDS)
@settings(max_examples=30, deadline=None)
def test_noise_equals_tflite_micro(
    size: int, clamps: bool, more_bits: int, bits: int, seed: int
) -> None:
    """Over many runs; shifts that lose bits at the top wrap."""
    rng = np.random.default_rng(seed)
    factors = [int(n) for n in rng.integers(0, 1 << int(rng.integers(1, 31)), 5)]
    names = [n for n in SUBTRACTION if "smoothing" in n and "bits" not in n]
    drawn = dict(zip([*names, "min_signal_remaining"], factors, strict=True))
    shifts = {"smoothing_bits": more_bits, "spectral_subtraction_bits": bits}
    if seed % 2:
        drawn, shifts = {}, {}
    options = {**SUBTRACTION, **drawn, **shifts, "num_channels": size, "clamping": clamps}
    model = subtraction(options, size)
    check(model, steps_of(model, rng, RUNS), options)


@pytest.mark.tools
@given(st.integers(1, 9), st.integers(0, 40), SEEDS)
@settings(max_examples=30, deadline=None)
def test_gains_equal_tflite_micro(size: int, shift: int, seed: int) -> None:
    """Any table, also one with gains below 0 and with polynomials that do not fit int16."""
    rng = np.random.default_rng(seed)
    bits = int(rng.integers(2, 17))
    table = rng.integers(-(1 << bits >> 1), 1 << bits >> 1, 125).astype(I16)
    model = pcan(size, shift, table)
    check(model, steps_of(model, rng, 12), (size, shift, seed))


@pytest.mark.tools
@given(st.integers(1, 20), st.integers(0, 31), st.integers(0, (1 << 31) - 1), SEEDS)
@settings(max_examples=40, deadline=None)
def test_logarithms_equal_tflite_micro(size: int, shift: int, scale: int, seed: int) -> None:
    """Any scale, also one at which products of 32 bits wrap; usual ones."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        shift, scale = shift % 8, 1 << scale % 14
    model = logarithm(size, shift, scale)
    check(model, steps_of(model, rng, 12), (size, shift, scale))


def all_of_them(rng: np.random.Generator) -> SignalModel:
    """All operators in one model, side by side; roots are those of inputs 1 and 2."""
    model, size = SignalModel(), int(rng.integers(1, 10))

    def drawn(dtype: Any) -> int:
        return model.input((size,), dtype)

    def added(
        code: str, options: dict[str, Any], operands: list[int], *results: tuple[int, Any]
    ) -> None:
        shaped = [((count,), dtype) for count, dtype in results]
        model.result(*model.operator(code, options, operands, *shaped))

    constants = [model.tensor(t.shape, I16, t) for t in tables(rng, 20, size)]
    energies = [model.input((20,), U32), *constants]
    added("SignalFilterBank", {"num_channels": size}, energies, (size, U64))
    squares = [model.input((8,), U64), model.input((), I32)]
    added("SignalFilterBankSquareRoot", {}, squares, (8, U32))
    options = {**SUBTRACTION, "num_channels": size, "clamping": bool(rng.integers(2))}
    code = "SignalFilterBankSpectralSubtraction"
    added(code, options, [drawn(U32)], (size, U32), (size, U32))
    gains = rng.integers(-(1 << 15), 1 << 15, 125).astype(I16)
    operands = [drawn(U32), drawn(U32), model.tensor((125,), I16, gains)]
    added("SignalPCAN", {"snr_shift": 6}, operands, (size, U32))
    options = {"input_correction_bits": 3, "output_scale": 1600}
    added("SignalFilterBankLog", options, [drawn(U32)], (size, I16))
    return model


@pytest.mark.tools
@pytest.mark.soak
def test_features_in_c() -> None:
    """Over many runs."""
    for seed in seeds(100, 1):
        rng = np.random.default_rng([seed, 71])
        model = all_of_them(rng)
        steps = steps_of(model, rng, RUNS)
        for step, values in zip(steps, roots(rng, RUNS), strict=True):
            step[1:3] = values
        assert_equal(by_c(model, steps), by_meaning(model, steps), seed)


@pytest.mark.tools
def test_a_number_by_packed_calls() -> None:
    """A tensor without dimensions is given as such."""
    model, rng = square_root(8), np.random.default_rng(1)
    config = CompilationConfig(targets="c", executor=Executor("aot", {"interface-api": "packed"}))
    steps = roots(rng, 3)
    assert_equal(by_c(model, steps, config=config), by_meaning(model, steps), "packed")


def bank_of(*, weights: int = 1, start: int = 0, first: int = 0, width: int = 1) -> SignalModel:
    """A filter bank of one channel over four frequencies, with two weights."""
    shared = [np.full(2, weights, I16), np.ones(2, I16)]
    bands = [np.array([0, number], I16) for number in (start, first, width)]
    return filter_bank(4, 1, [*shared, *bands])


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (bank_of(weights=-1), "a weight below 0"),
        (bank_of(start=4), "4 frequencies and 2 weights"),
        (bank_of(start=-1), "4 frequencies and 2 weights"),
        (bank_of(first=2), "4 frequencies and 2 weights"),
        (filter_bank(4, 3, [np.ones(2, I16)] * 5), "describes 2 bands"),
        (
            one(
                "SignalFilterBank",
                {"num_channels": 1},
                [((4,), U32, None), *[((2,), I16, None)] * 5],
                ((1,), U64),
            ),
            "input 1 is computed",
        ),
        (subtraction(SUBTRACTION, 5), "(6,)"),
        (subtraction(SUBTRACTION | {"smoothing": -1}, 6), "smoothing is -1"),
        (subtraction(SUBTRACTION | {"smoothing_bits": 32}, 6), "smoothing_bits is 32"),
        (pcan(3, 6, np.ones(124, I16)), "125 or more"),
        (pcan(3, 64, np.ones(125, I16)), "snr_shift is 64"),
        (logarithm(3, 32, 1), "input_correction_bits is 32"),
        (logarithm(3, 1, -1), "output_scale is -1"),
    ],
)
def test_refusals(model: SignalModel, text: str) -> None:
    """What tflite-micro reads outside of its memory for, or computes with undefined shifts."""
    assert text in refusal(model.build())
