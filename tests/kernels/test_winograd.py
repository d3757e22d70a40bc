"""Winograd's transforms in integers: exact for any weights, and refused where a sum could leave."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.config.enums import Optimize
from microtir.kernels import candidates, refusals
from microtir.kernels.common import winograd
from microtir.operators.common.attributes import Padding2D
from microtir.operators.convolution.definition import Conv2D
from microtir.plan.ir import Refusal
from tests.kernels.test_code_bytes import IMAGE, SAME, config_for, linear

NAME = "conv_s8_16x2_dsp_winograd"
_INPUTS = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
_OUTPUTS = np.array([[1, 1, 1, 0], [0, 1, -1, -1]])


@settings(max_examples=40, deadline=None)
@given(st.sampled_from((8, 33, 256)), st.sampled_from(("random", "largest", "least", "turns")))
def test_sums_are_four_times_those_of_windows(channels: int, kind: str) -> None:
    """All in int32, whatever the weights, for inputs at their ends."""
    rng = np.random.default_rng(channels)
    shape = (2, 3, 3, channels)
    weights = {
        "random": rng.integers(-128, 128, shape),
        "largest": np.full(shape, 127),
        "least": np.full(shape, -128),
        "turns": np.where(np.arange(18 * channels).reshape(shape) % 2, 127, -128),
    }[kind].astype(np.int8)
    x = rng.choice(np.array([-128, 127]), (4, 4, channels))
    u = winograd.transformed(weights)
    assert winograd.fits(u)
    v = np.einsum("ir,rsc,js->ijc", _INPUTS, x, _INPUTS).reshape(16, channels)
    assert np.abs(v).max() <= 512 and np.abs(u).max() <= 1152
    products = np.einsum("kpc,pc->kp", u.astype(np.int32), v.astype(np.int32)).reshape(2, 4, 4)
    sums = np.einsum("ai,kij,bj->kab", _OUTPUTS, products, _OUTPUTS)
    for row, column in np.ndindex(2, 2):
        window = x[row : row + 3, column : column + 3].astype(np.int64)
        direct = (weights.astype(np.int64) * window).sum(axis=(1, 2, 3))
        np.testing.assert_array_equal(sums[:, row, column], 4 * direct)


def test_a_sum_that_could_leave_32_bits_is_found() -> None:
    """The bound is reached by weights of one sign, in channels enough."""
    weights = np.full((1, 3, 3, 1), -128, np.int8)
    positions = winograd.transformed(weights).astype(np.int64)
    # Rows of positions of such weights are 2, 3, 1 and 2 of them; an output has three of each.
    most = ((1 << 31) - 1) // (512 * 36 * 128)
    for channels, fits in ((most, True), (most + 1, False)):
        assert winograd.fits(np.repeat(positions, channels, axis=2).astype(np.int16)) is fits


@pytest.mark.parametrize(
    ("op", "image", "weights", "refusal"),
    [
        (Conv2D(padding=SAME), IMAGE, (2, 3, 3, 32), None),
        (Conv2D(padding=Padding2D(0, 2, 2, 0)), IMAGE, (3, 3, 3, 32), None),
        (Conv2D(padding=SAME), (1, 8, 8, 7), (2, 3, 3, 7), Refusal.FEW_CHANNELS),
        (Conv2D(padding=SAME), IMAGE, (1, 3, 3, 32), Refusal.FEW_CHANNELS),
        (Conv2D(padding=Padding2D(1, 1, 0, 1)), (1, 8, 8, 32), (2, 3, 2, 32), Refusal.WINDOWS),
        (Conv2D(padding=SAME), (1, 9, 7, 32), (2, 3, 3, 32), Refusal.SIZES),
        (Conv2D(padding=SAME), (1, 8, 8, 260), (2, 3, 3, 260), Refusal.SIZES),
    ],
)
def test_what_is_refused_has_a_reason(
    op: Conv2D, image: tuple[int, ...], weights: tuple[int, ...], refusal: Refusal | None
) -> None:
    """Which windows, how many channels, how wide."""
    layer = linear(op, image, weights)
    config = config_for("cortex-m4")
    assert dict(refusals(layer, config)).get(NAME) is refusal
    assert any(c.kernel == NAME for c in candidates(layer, config)) is (refusal is None)


def test_transformed_weights_are_stated() -> None:
    """32 bytes for each pair of channels, which balanced and flash are charged."""
    layer = linear(Conv2D(padding=SAME), IMAGE, (16, 3, 3, 32))
    (offered,) = (c for c in candidates(layer, config_for("cortex-m4")) if c.kernel == NAME)
    assert offered.weight_bytes == 32 * 16 * 32 + 8 * 36
    assert config_for("cortex-m4").optimize is Optimize.SPEED
