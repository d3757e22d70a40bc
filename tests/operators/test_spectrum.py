"""Operators between samples and spectra: meaning, TIR, C and tflite-micro are equal to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.dtype import DType
from microtir.graph.ir import Array
from microtir.operators.spectrum.definition import stages, twiddles
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

I16, I32, F32, U32 = np.int16, np.int32, np.float32, np.uint32
CODES = {"int16": 7, "int32": 2, "float32": 0}
TYPES = [I16, I32, F32]
# 4, 2, 3 and 5 at the first and at other stages.
LENGTHS = [4, 6, 8, 10, 12, 16, 18, 20, 24, 30, 32, 50, 54, 64, 90, 120, 128, 150]
LONG = [256, 320, 480, 512, 1024]


def rfft(length: int, given_: int, rows: int, dtype: Any) -> SignalModel:
    """A model of SignalRfft."""
    options = {"T": CODES[np.dtype(dtype).name], "fft_length": length}
    return one("SignalRfft", options, [((rows, given_), dtype, None)], ((rows, length + 2), dtype))


def irfft(length: int, rows: int, dtype: Any) -> SignalModel:
    """A model of SignalIrfft."""
    options = {"T": CODES[np.dtype(dtype).name], "fft_length": length}
    operands = [((rows, length + 2), dtype, None)]
    return one("SignalIrfft", options, operands, ((rows, length), dtype))


def loud(model: SignalModel, seed: int, count: int) -> Steps:
    """Inputs of all sizes; some of extremes only, whose sums do not fit their type."""
    rng = np.random.default_rng(seed)
    steps = steps_of(model, rng, count)
    ((shape, dtype),) = model.given
    if dtype.kind == "i":
        info = np.iinfo(dtype)
        ends = np.array([info.min, info.max, info.min + 1], dtype)
        steps += [[rng.choice(ends, shape)], [np.full(shape, info.min, dtype)]]
    return steps


@pytest.mark.tools
@given(
    st.sampled_from(LENGTHS), st.data(), st.integers(1, 2), st.sampled_from(TYPES), st.integers(0)
)
@settings(max_examples=60, deadline=None)
def test_transforms_equal_tflite_micro(
    length: int, data: st.DataObject, rows: int, dtype: Any, seed: int
) -> None:
    """Both directions, with and without zeros behind the samples; floats, too, to the bit."""
    given_ = data.draw(st.integers(1, length))
    for model in (rfft(length, given_, rows, dtype), irfft(length, rows, dtype)):
        steps = loud(model, seed, 3)
        assert_equal(by_meaning(model, steps), by_oracle(model, steps), (length, given_, dtype))


@pytest.mark.tools
@pytest.mark.parametrize("length", LONG)
def test_long_transforms_equal_tflite_micro(length: int) -> None:
    """Lengths that models have."""
    for dtype in TYPES:
        for model in (rfft(length, length * 15 // 16, 1, dtype), irfft(length, 1, dtype)):
            steps = loud(model, length, 2)
            assert_equal(by_meaning(model, steps), by_oracle(model, steps), (length, dtype))


@pytest.mark.parametrize("dtype", [I16, I32])
def test_no_sum_leaves_its_type(dtype: Any) -> None:
    """What wraps in tflite-micro is written as such: no value of TIR leaves its type."""
    for length in (4, 6, 10, 16, 30):
        for model in (rfft(length, length, 1, dtype), irfft(length, 1, dtype)):
            steps = loud(model, length, 4)
            assert_equal(by_interpreter(model, steps), by_meaning(model, steps), length)


@pytest.mark.tools
@pytest.mark.soak
def test_transforms_in_c() -> None:
    """All radices, in one model of all types and both directions."""
    for seed in seeds(100, 1):
        rng, model = np.random.default_rng([seed, 67]), SignalModel()
        for dtype in TYPES:
            length = int(rng.choice(LENGTHS))
            shape, spectrum = (1, int(rng.integers(1, length + 1))), (1, length + 2)
            options = {"T": CODES[np.dtype(dtype).name], "fft_length": length}
            x = model.input(shape, dtype)
            there = model.operator("SignalRfft", options, [x], (spectrum, dtype))
            back = model.operator("SignalIrfft", options, there, ((1, length), dtype))
            model.result(*there, *back)
        steps = steps_of(model, rng, 12)
        assert_equal(by_c(model, steps), by_meaning(model, steps), seed)


def auto_scale(size: int) -> SignalModel:
    """A model of SignalFftAutoScale."""
    return one("SignalFftAutoScale", {}, [((size,), I16, None)], ((size,), I16), ((), I32))


def energy(size: int, start: int, end: int) -> SignalModel:
    """A model of SignalEnergy."""
    options = {"start_index": start, "end_index": end}
    return one("SignalEnergy", options, [((2 * size,), I16, None)], ((size,), U32))


@pytest.mark.tools
@given(st.lists(st.integers(-(1 << 15), (1 << 15) - 1), min_size=1, max_size=20))
@settings(max_examples=60, deadline=None)
def test_scales_equal_tflite_micro(values: list[int]) -> None:
    """-32768 is forgotten as soon as another sample comes."""
    model = auto_scale(len(values) + 1)
    tails = (0, 5, -7, -(1 << 15))
    steps: Steps = [[np.array([*values, tail], I16)] for tail in tails]
    steps += [[np.array([-(1 << 15), *values], I16)]]
    want = by_oracle(model, steps)
    assert_equal(by_meaning(model, steps), want, values)
    assert_equal(by_interpreter(model, steps), want, values)


@pytest.mark.tools
@given(st.integers(1, 12), st.data(), st.integers(0))
@settings(max_examples=40, deadline=None)
def test_energies_equal_tflite_micro(size: int, data: st.DataObject, seed: int) -> None:
    """Equal in the range of frequencies; 0 outside, where tflite-micro writes nothing."""
    start, end = data.draw(st.integers(0, size)), data.draw(st.integers(0, size))
    model = energy(size, start, end)
    steps = loud(model, seed, 5)
    want = by_oracle(model, steps)
    outside = np.ones(size, np.bool_)
    outside[start : max(start, end)] = False
    for (result,) in want:
        result[outside] = 0
    assert_equal(by_meaning(model, steps), want, (size, start, end))
    assert_equal(by_interpreter(model, steps), want, (size, start, end))


@pytest.mark.tools
def test_scales_and_energies_in_c() -> None:
    """In one model."""
    rng, model = np.random.default_rng(3), SignalModel()
    scaled = model.operator(
        "SignalFftAutoScale", {}, [model.input((9,), I16)], ((9,), I16), ((), I32)
    )
    options = {"start_index": 1, "end_index": 6}
    squares = model.operator("SignalEnergy", options, [model.input((16,), I16)], ((8,), U32))
    model.result(*scaled, *squares)
    steps = steps_of(model, rng, 30)
    steps.append([np.full(9, -(1 << 15), I16), np.full(16, -(1 << 15), I16)])
    assert_equal(by_c(model, steps), by_meaning(model, steps), "together")


def test_stages_and_factors() -> None:
    """4 is taken out first, then 2, 3 and 5; the first factor is 1."""
    assert [tuple(stage) for stage in stages(120)] == [
        (4, 30, 1),
        (2, 15, 4),
        (3, 5, 8),
        (5, 1, 24),
    ]
    factors: Array = twiddles(4, DType.INT16, inverse=False)
    assert factors.tolist() == [[32767, 0], [0, -32767], [-32767, 0], [0, 32767]]


@pytest.mark.parametrize(
    ("options", "given_", "result", "text"),
    [
        ({"T": 7, "fft_length": 14}, 8, 16, "without prime factors above 5"),
        ({"T": 7, "fft_length": 9}, 8, 11, "an even length"),
        ({"T": 7, "fft_length": 2}, 2, 4, "fft_length is 2"),
        ({"T": 2, "fft_length": 8}, 8, 10, "7, for int16"),
        ({"T": 7, "fft_length": 8}, 9, 10, "1 to 8 in the last dimension"),
        ({"T": 7, "fft_length": 1 << 20}, 8, 10, "fft_length is 1048576"),
        ({"fft_length": 8}, 8, 10, "T is missing"),
    ],
)
def test_refusals(options: dict[str, Any], given_: int, result: int, text: str) -> None:
    """Lengths at which tflite-micro ends its program, and tensors that do not fit them."""
    model = SignalModel()
    x, y = model.input((given_,), I16), model.tensor((result,), I16)
    model.builder.custom_operator("SignalRfft", [x], [y], bytes(flexbuffers.Dumps(options)))
    model.result(y)
    assert text in refusal(model.build())
