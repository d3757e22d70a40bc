"""Operators that cut samples into frames and join frames: meaning, C and tflite-micro are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers
from hypothesis import given, settings
from hypothesis import strategies as st

import microtir
from tests.frontend.models import refusal
from tests.support.seeds import seeds
from tests.support.signals import (
    SignalModel,
    assert_equal,
    by_c,
    by_interpreter,
    by_meaning,
    by_oracle,
    one,
    steps_of,
)

I16, F32 = np.int16, np.float32
RUNS = 50


def window(rows: int, width: int, shift: int, weights: Any) -> SignalModel:
    """A model of SignalWindow; weights None are an input."""
    operands = [((rows, width), I16, None), ((width,), I16, weights)]
    return one("SignalWindow", {"shift": shift}, operands, ((rows, width), I16))


def framer(rows: int, frames: int, size: int, step: int, prefill: bool) -> SignalModel:
    """A model of SignalFramer."""
    options = {"frame_size": size, "frame_step": step, "prefill": prefill}
    operands = [((rows, frames * step), I16, None)]
    return one("SignalFramer", options, operands, ((rows, frames, size), I16), ((), np.bool_))


def stacker(channels: int, left: int, right: int, step: int) -> SignalModel:
    """A model of SignalStacker."""
    options = {
        "num_channels": channels,
        "stacker_left_context": left,
        "stacker_right_context": right,
        "stacker_step": step,
    }
    result = ((channels * (left + 1 + right),), I16)
    return one("SignalStacker", options, [((channels,), I16, None)], result, ((), np.bool_))


def overlap_add(rows: int, frames: int, size: int, step: int, dtype: Any) -> SignalModel:
    """A model of SignalOverlapAdd."""
    options = {"T": {"int16": 7, "float32": 0}[np.dtype(dtype).name], "frame_step": step}
    operands = [((rows, frames, size), dtype, None)]
    return one("SignalOverlapAdd", options, operands, ((rows, frames * step), dtype))


def delay(rows: int, samples: int, length: int) -> SignalModel:
    """A model of SignalDelay."""
    shape = (rows, samples)
    return one("SignalDelay", {"delay_length": length}, [(shape, I16, None)], (shape, I16))


FEW, SIZES, SEEDS = st.integers(1, 3), st.integers(1, 24), st.integers(0, 1 << 30)


def check(model: SignalModel, seed: int, what: object, valid: int | None = None) -> None:
    """Compare the meaning with tflite-micro over many runs."""
    steps = steps_of(model, np.random.default_rng(seed), RUNS)
    got = by_meaning(model, steps)
    assert_equal(got, by_oracle(model, steps), what, valid=valid)
    assert_equal(by_interpreter(model, steps[:4]), got[:4], what)


@pytest.mark.tools
@given(FEW, SIZES, st.integers(0, 31), st.booleans(), SEEDS)
@settings(max_examples=25, deadline=None)
def test_windows_equal_tflite_micro(
    rows: int, width: int, shift: int, fixed: bool, seed: int
) -> None:
    """Products are rounded down and clamped."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(-(1 << 15), 1 << 15, width).astype(I16) if fixed else None
    check(window(rows, width, shift, weights), seed, (rows, width, shift))


@pytest.mark.tools
@given(FEW, FEW, SIZES, SIZES, st.booleans(), SEEDS)
@settings(max_examples=40, deadline=None)
def test_framers_equal_tflite_micro(
    rows: int, frames: int, size: int, step: int, prefill: bool, seed: int
) -> None:
    """Steps that divide a frame and steps that do not; frames shorter than a step."""
    prefill = prefill and step <= size
    model = framer(rows, frames, size, step, prefill)
    check(model, seed, (rows, frames, size, step, prefill), valid=1)


@pytest.mark.tools
@given(st.integers(1, 6), st.integers(0, 4), st.integers(0, 4), st.data(), SEEDS)
@settings(max_examples=40, deadline=None)
def test_stackers_equal_tflite_micro(
    channels: int, left: int, right: int, data: st.DataObject, seed: int
) -> None:
    """All contexts, and steps up to a whole stack."""
    step = data.draw(st.integers(1, left + 1 + right))
    check(stacker(channels, left, right, step), seed, (channels, left, right, step), valid=1)


@pytest.mark.tools
@given(FEW, FEW, SIZES, st.data(), st.sampled_from([I16, F32]), SEEDS)
@settings(max_examples=40, deadline=None)
def test_overlapping_frames_equal_tflite_micro(
    rows: int, frames: int, size: int, data: st.DataObject, dtype: Any, seed: int
) -> None:
    """Integers are clamped frame by frame; floats are added in the same order."""
    step = data.draw(st.integers(1, size))
    check(overlap_add(rows, frames, size, step, dtype), seed, (rows, frames, size, step, dtype))


@pytest.mark.tools
@given(FEW, SIZES, st.integers(0, 60), SEEDS)
@settings(max_examples=25, deadline=None)
def test_delays_equal_tflite_micro(rows: int, samples: int, length: int, seed: int) -> None:
    """Delays shorter and longer than what a run brings."""
    check(delay(rows, samples, length), seed, (rows, samples, length))


def drawn(seed: int) -> SignalModel:
    """One model with one of each operator, side by side: each has its input and its outputs."""
    rng, model = np.random.default_rng([seed, 61]), SignalModel()

    def number(low: int, high: int) -> int:
        return int(rng.integers(low, high + 1))

    rows, frames, size = number(1, 2), number(1, 3), number(1, 12)
    step, prefill = number(1, 12), bool(number(0, 1))
    step = min(step, size) if prefill else step
    framed = ((rows, frames, size), I16), ((), np.bool_)
    options = {"frame_size": size, "frame_step": step, "prefill": prefill}
    x = model.input((rows, frames * step), I16)
    cut = model.operator("SignalFramer", options, [x], *framed)
    weights = model.tensor((size,), I16, rng.integers(-4096, 4097, size).astype(I16))
    shaped = model.operator("SignalWindow", {"shift": 10}, [cut[0], weights], framed[0])
    inner = number(1, size)
    added = ((rows, frames * inner), I16)
    sums = model.operator("SignalOverlapAdd", {"T": 7, "frame_step": inner}, shaped, added)
    late = model.operator("SignalDelay", {"delay_length": number(0, 20)}, sums, added)
    channels, left, right = number(1, 5), number(0, 3), number(0, 3)
    stacked = {
        "num_channels": channels,
        "stacker_left_context": left,
        "stacker_right_context": right,
        "stacker_step": number(1, left + 1 + right),
    }
    y = model.input((channels,), I16)
    result = ((channels * (left + 1 + right),), I16)
    stack = model.operator("SignalStacker", stacked, [y], result, ((), np.bool_))
    real = model.input((rows, frames, size), F32)
    options = {"T": 0, "frame_step": inner}
    reals = model.operator("SignalOverlapAdd", options, [real], (added[0], F32))
    model.result(*late, cut[1], *stack, *reals)
    return model


@pytest.mark.tools
@pytest.mark.soak
def test_c_equals_the_meaning() -> None:
    """States lie in the caller's struct and are changed in place."""
    for seed in seeds(100, 1):
        model = drawn(seed)
        steps = steps_of(model, np.random.default_rng(seed), RUNS)
        assert_equal(by_c(model, steps), by_meaning(model, steps), seed)


def test_reset_begins_again() -> None:
    """A reset model gives what a new one gives."""
    sketch = framer(1, 1, 5, 2, False)
    module = microtir.frontend.from_tflite(sketch.build())
    model = microtir.host.load(microtir.build(module))
    steps, name = steps_of(sketch, np.random.default_rng(1), 6), "t1"
    first = [list(model.run({name: x}).values()) for (x,) in steps]
    model.reset()
    assert_equal([list(model.run({name: x}).values()) for (x,) in steps], first, "reset")


def changed(code: str, options: dict[str, Any], *shapes: Any) -> bytes:
    """A model of one operator whose options are at odds with its tensors."""
    (given_shape, *results) = shapes
    model = SignalModel()
    x = model.input(given_shape, I16)
    made = [model.tensor(s, I16 if n == 0 else np.bool_) for n, s in enumerate(results)]
    model.builder.custom_operator(code, [x], made, bytes(flexbuffers.Dumps(options)))
    model.result(*made)
    return model.build()


FRAMER = {"frame_size": 4, "frame_step": 2, "prefill": False}
STACKER = {
    "num_channels": 2,
    "stacker_left_context": 1,
    "stacker_right_context": 1,
    "stacker_step": 1,
}


@pytest.mark.parametrize(
    ("code", "options", "shapes", "text"),
    [
        ("SignalFramer", FRAMER | {"frame_step": 0}, ((2,), (1, 4), ()), "frame_step is 0"),
        ("SignalFramer", FRAMER | {"frame_size": 5}, ((2,), (1, 4), ()), "(1, 5)"),
        ("SignalFramer", FRAMER, ((3,), (1, 4), ()), "a multiple of the step"),
        (
            "SignalFramer",
            {"frame_size": 2, "frame_step": 4, "prefill": True},
            ((4,), (1, 2), ()),
            "at most 2, with prefill",
        ),
        ("SignalStacker", STACKER | {"stacker_step": 4}, ((2,), (6,), ()), "1 to 3"),
        ("SignalStacker", STACKER | {"stacker_left_context": -1}, ((2,), (6,), ()), "is -1"),
        ("SignalStacker", STACKER | {"num_channels": 3}, ((2,), (6,), ()), "(3,)"),
        ("SignalOverlapAdd", {"T": 0, "frame_step": 2}, ((1, 4), (2,)), "7, for int16"),
        ("SignalOverlapAdd", {"T": 7, "frame_step": 5}, ((1, 4), (5,)), "at most 4"),
        ("SignalDelay", {"delay_length": -2}, ((4,), (4,)), "delay_length is -2"),
        ("SignalDelay", {"delay_length": 1 << 30}, ((4,), (4,)), "delays by"),
    ],
)
def test_refusals(code: str, options: dict[str, Any], shapes: Any, text: str) -> None:
    """What tflite-micro does not check, or reads and writes outside of its memory for."""
    assert text in refusal(changed(code, options, *shapes))
