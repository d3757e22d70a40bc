"""Dual-packed weights: exact where they are accepted, refused where a lane or sum overflows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.kernels.arm_dsp.gemm import pack_quads
from microtir.kernels.arm_dsp.patch import Segments
from microtir.kernels.common.weights import channel_pairs, channel_quads, pack_pairs


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 9), st.integers(1, 40), st.integers(0, 2**16))
def test_both_sums_come_out_of_one(channels: int, values: int, seed: int) -> None:
    """Sums of both channels follow from the raw sum and that of the low bytes."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(-127, 128, (channels, values)).astype(np.int8)
    x = rng.integers(-128, 128, values)
    lanes = pack_pairs(weights)
    assert lanes is not None
    for lane, (a, b) in zip(lanes.astype(np.int64), channel_pairs(channels), strict=True):
        low = ((lane + 128) % 256 - 128) @ x
        raw = lane @ x
        assert abs(raw) < 1 << 31
        assert low == weights[a].astype(np.int64) @ x
        assert (raw - low) / 256 == weights[b].astype(np.int64) @ x


@pytest.mark.parametrize(
    ("weights", "fits"),
    [
        (np.array([[-128], [-127]], np.int8), True),
        (np.array([[-1], [-128]], np.int8), False),  # the lane is below -32768
        (np.array([[0], [-128]], np.int8), True),
        (np.full((2, 514), 127, np.int8), True),
        (np.full((2, 515), 127, np.int8), False),  # the raw sum may leave int32
        (np.array([[127] * 516, [-127] * 516], np.int8), True),
        (np.array([[127] * 517, [-127] * 517], np.int8), False),  # 256 times the high one may
    ],
)
def test_overflow_is_checked_exactly(
    weights: np.ndarray[tuple[int, int], np.dtype[np.int8]], fits: bool
) -> None:
    """The limits are those of int16 lanes and int32 sums, for the actual weights."""
    assert (pack_pairs(weights) is not None) == fits


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5), st.integers(1, 13))
def test_patch_holds_every_value_once(count: int, length: int) -> None:
    """Arranged weights are the given ones, with zeros where a tail has no partner."""
    segments = Segments(count, length)
    numbers = np.arange(1, count * length + 1, dtype=np.int8).reshape(1, count, length)
    arranged = segments.arrange(numbers)
    assert arranged.shape == (1, segments.steps, 2)
    found = sorted(int(v) for v in arranged.reshape(-1) if v)
    assert found == sorted(int(v) for v in numbers.reshape(-1))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5), st.integers(1, 13))
def test_words_of_a_single_pixel_follow_each_other(count: int, length: int) -> None:
    """Its patch is that of two pixels without the other one, in the order of the weights."""
    pair, single = Segments(count, length), Segments(count, length).single
    assert single.steps == pair.steps
    assert single.elements(1) == 2 * pair.steps == pair.elements(1) // 2
    assert single.tail_stride == pair.tail_stride // 2


@settings(max_examples=60, deadline=None)
@given(st.integers(4, 13), st.integers(1, 9), st.integers(0, 2**16))
def test_constants_follow_the_weights_of_their_quad(channels: int, steps: int, seed: int) -> None:
    """A word holds both lanes of a pair; the last word of a channel its shift and the quad."""
    rng = np.random.default_rng(seed)
    order = channel_quads(channels)
    weights = rng.integers(-127, 128, (channels, steps, 2)).astype(np.int8)
    constants = rng.integers(-(2**31), 2**31, (channels, 4)).astype(np.int32)
    constants[:, 3] = rng.integers(0, 32, channels)
    lanes = pack_pairs(weights[order])
    assert lanes is not None
    packed = pack_quads(lanes, constants[order], np.array(order[::4]))
    assert packed.shape == (len(order) // 4, steps + 8, 2)
    low, high = packed[:, :steps] & 0xFFFF, packed[:, :steps] >> 16
    read = np.stack([(low ^ 0x8000) - 0x8000, high], axis=-1).transpose(0, 2, 1, 3)
    np.testing.assert_array_equal(read.reshape(-1, steps, 2), lanes)
    words = packed[:, steps:].reshape(-1, 4)
    firsts = np.repeat(order[::4], 4)
    np.testing.assert_array_equal(words[:, :3], constants[order, :3])
    np.testing.assert_array_equal(words[:, 3] & 255, constants[order, 3])
    np.testing.assert_array_equal(words[:, 3] >> 8, firsts)
