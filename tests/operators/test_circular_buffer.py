"""CIRCULAR_BUFFER keeps the newest inputs, and lets what follows run in some runs only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers
from hypothesis import given, settings
from hypothesis import strategies as st

import microtir
from microtir.frontend.tflite_operators import OPTIONS_OF
from microtir.frontend.tflite_variables import (
    VarHandleOptions,
)
from microtir.operators.common.tflite_schema import BuiltinOperator, Options
from microtir.writers.tflite import TfliteBuilder
from tests.frontend.models import refusal
from tests.support.signals import SignalModel, Steps, assert_equal, by_c, by_meaning, by_oracle

I8 = np.int8
RUNS = 60


class Streaming(SignalModel):
    """A model of rings one behind the other, each with a scaled copy of what it holds."""

    def ring(self, newest: int, slots: int, width: int, channels: int, period: int | None) -> int:
        """Add a ring and return it."""
        options = {} if period is None else {"cycles_max": period}
        result = self.kept(f"ring{self.names}", (1, slots, width, channels))
        packed = bytes(flexbuffers.Dumps(options)) if options else b""
        self.builder.custom_operator("CIRCULAR_BUFFER", [newest], [result], packed)
        return result

    def kept(self, name: str, shape: tuple[int, ...]) -> int:
        """Return a variable tensor."""
        self.names += 1
        return self.builder.tensor(name, shape, I8, scales=[0.5], zero_points=[4], is_variable=True)

    def quantised(self, shape: tuple[int, ...]) -> int:
        """Return a tensor of the scale that all have here."""
        self.names += 1
        return self.builder.tensor(f"t{self.names}", shape, I8, scales=[0.5], zero_points=[4])

    def newest(self, shape: tuple[int, ...]) -> int:
        """Return an input."""
        self.inputs.append(self.quantised(shape))
        self.given.append((shape, np.dtype(I8)))
        return self.inputs[-1]

    def added(self, tensor: int, shape: tuple[int, ...]) -> int:
        """Return twice a tensor."""
        result = self.quantised(shape)
        self.builder.operator(BuiltinOperator.ADD, [tensor, tensor], [result], ADD)
        return result

    def slot(self, tensor: int, slots: int, width: int, channels: int) -> int:
        """Return the mean of the slots of a ring, as one slot."""
        axes = self.tensor((1,), np.int32, np.array([1], np.int32))
        result = self.quantised((1, 1, width, channels))
        self.builder.operator(BuiltinOperator.MEAN, [tensor, axes], [result], MEAN)
        return result


def options_of(code: BuiltinOperator, **values: Any) -> Options:
    """Return the options of an operator."""
    return OPTIONS_OF[code](**values)


ADD, MEAN = options_of(BuiltinOperator.ADD), options_of(BuiltinOperator.MEAN, keep_dims=True)


def one_ring(slots: int, width: int, channels: int, period: int | None) -> Streaming:
    """A ring, and what is computed of it in some runs."""
    model = Streaming()
    ring = model.ring(model.newest((1, 1, width, channels)), slots, width, channels, period)
    model.result(model.added(ring, (1, slots, width, channels)))
    return model


def two_rings(periods: tuple[int, int]) -> Streaming:
    """A ring whose mean goes to another one; a sum in between, and one behind both."""
    model = Streaming()
    first = model.ring(model.newest((1, 1, 2, 3)), 4, 2, 3, periods[0])
    middle = model.slot(first, 4, 2, 3)
    second = model.ring(middle, 3, 2, 3, periods[1])
    model.result(model.added(first, (1, 4, 2, 3)), model.added(second, (1, 3, 2, 3)))
    return model


def steps_of(model: SignalModel, seed: int) -> Steps:
    """Draw inputs of many runs."""
    rng = np.random.default_rng(seed)
    return [
        [rng.integers(-128, 128, shape).astype(I8) for shape, _ in model.given] for _ in range(RUNS)
    ]


def check_due(model: SignalModel, period: int, seed: int) -> Steps:
    """Compare runs that compute the outputs with tflite-micro, and others with those before.

    tflite-micro leaves outputs as they were only where nothing else lies in their memory.
    """
    steps = steps_of(model, seed)
    got, want = by_meaning(model, steps), by_oracle(model, steps)
    assert_equal(got[period - 1 :: period], want[period - 1 :: period], (period, seed))
    for run in range(period, RUNS):
        if (run + 1) % period:
            assert_equal(got[run : run + 1], got[run - 1 : run], ("kept", period, run))
    return got


@pytest.mark.tools
@given(
    st.integers(1, 7), st.integers(1, 3), st.integers(1, 4), st.integers(1, 4),
    st.integers(0, 1 << 30),
)  # fmt: skip
@settings(max_examples=15, deadline=None)
def test_rings_equal_tflite_micro(
    slots: int, width: int, channels: int, period: int, seed: int
) -> None:
    """Slots move towards the start of the ring in each run, due or not."""
    check_due(one_ring(slots, width, channels, period), period, seed)


@pytest.mark.tools
@pytest.mark.parametrize("periods", [(1, 1), (1, 3), (2, 3)])
def test_rings_behind_each_other(periods: tuple[int, int]) -> None:
    """A ring behind one of period 2 sees half of the runs; the C equals the meaning."""
    model = two_rings(periods)
    steps = steps_of(model, 7)
    got, want = by_meaning(model, steps), by_oracle(model, steps)
    period = periods[0] * periods[1]
    assert_equal(got[period - 1 :: period], want[period - 1 :: period], periods)
    assert len({outputs[1].tobytes() for outputs in got}) == RUNS // period + (period > 1)
    assert_equal(by_c(model, steps), got, periods)


@pytest.mark.tools
@pytest.mark.parametrize("slots", [5, 13, 25, 4])
def test_without_the_option_the_period_follows_from_the_slots(slots: int) -> None:
    """As in tflite-micro."""
    check_due(one_ring(slots, 1, 2, None), 1 if slots != 4 else 2, 3)


def counting_model(period: int) -> Streaming:
    """A ring, and a variable that sums its means in runs that are due."""
    model = Streaming()
    ring = model.ring(model.newest((1, 1, 1, 2)), 2, 1, 2, period)
    mean = model.slot(ring, 2, 1, 2)
    code, names = BuiltinOperator, VarHandleOptions("", "sum")
    handle = model.builder.tensor("handle", (), "resource")
    model.builder.operator(code.VAR_HANDLE, [], [handle], names)
    old, new = model.quantised((1, 1, 1, 2)), model.quantised((1, 1, 1, 2))
    model.builder.operator(code.READ_VARIABLE, [handle], [old])
    model.builder.operator(code.ADD, [old, mean], [new], ADD)
    model.builder.operator(code.ASSIGN_VARIABLE, [handle, new], [])
    model.result(model.added(new, (1, 1, 1, 2)))
    return model


@pytest.mark.tools
def test_what_follows_keeps_its_state() -> None:
    """A variable that is assigned behind a ring changes in runs that are due only."""
    steps = [[np.full((1, 1, 1, 2), 4 + n % 3, I8)] for n in range(RUNS)]
    model = counting_model(3)
    got = by_meaning(model, steps)
    assert_equal(got[2::3], by_oracle(model, steps)[2::3], "sums")
    assert_equal(by_c(model, steps), got, "sums in C")
    assert len({outputs[0].tobytes() for outputs in got}) == RUNS // 3 + 1


def test_a_reset_begins_again() -> None:
    """The counter, too."""
    sketch = two_rings((2, 1))
    module = microtir.frontend.from_tflite(sketch.build())
    assert module.graph is not None
    name = module.graph.arguments[0].name
    model = microtir.host.load(microtir.build(module))
    steps = [{name: x} for (x,) in steps_of(sketch, 1)[:7]]
    first = [list(model.run(step).values()) for step in steps]
    model.reset()
    assert_equal([list(model.run(step).values()) for step in steps], first, "reset")


def damaged(shapes: tuple[tuple[int, ...], tuple[int, ...]], options: dict[str, Any]) -> bytes:
    """A model of one ring."""
    builder = TfliteBuilder()
    x, ring = (
        builder.tensor(name, shape, I8, scales=[0.5], zero_points=[4], is_variable=name == "ring")
        for name, shape in zip(("x", "ring"), shapes, strict=True)
    )
    packed = bytes(flexbuffers.Dumps(options)) if options else b""
    builder.custom_operator("CIRCULAR_BUFFER", [x], [ring], packed)
    return builder.build([x], [ring])


@pytest.mark.parametrize(
    ("shapes", "options", "text"),
    [
        (((1, 2, 1, 3), (1, 4, 1, 3)), {"cycles_max": 1}, "(1, slots, W, C)"),
        (((1, 1, 1, 3), (1, 4, 1, 2)), {"cycles_max": 1}, "(1, slots, W, C)"),
        (((2, 1, 1, 3), (2, 4, 1, 3)), {"cycles_max": 1}, "(1, slots, W, C)"),
        (((1, 1, 2, 96), (1, 4, 2, 96)), {}, "cycles_max is missing"),
    ],
)
def test_refusals(shapes: Any, options: dict[str, Any], text: str) -> None:
    """What the operator does not define, and the one period that no file says."""
    assert text in refusal(damaged(shapes, options))
