"""Winograd's transforms in integers: exact for any weights, and refused where a sum could leave."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.config.enums import Optimize
from microtir.kernels import candidates, refusals
from microtir.kernels.common import winograd, winograd_rows
from microtir.memory.footprint import Footprints
from microtir.operators.common.attributes import Padding2D
from microtir.operators.convolution.definition import Conv2D
from microtir.plan.ir import CALLS, Calls, PlannedOperator, Refusal
from microtir.tir.ir import Array
from tests.kernels.test_code_bytes import IMAGE, SAME, config_for, linear
from tests.support.kernel_cases import emitted

NAME, ROWS, FEW = (f"conv_s8_{tile}_dsp_winograd" for tile in ("16x2", "8x2", "4x4"))
_INPUTS = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
_OUTPUTS = np.array([[1, 1, 1, 0], [0, 1, -1, -1]])


_ROW = np.array([[0, 1, 1, 0], [0, -1, 1, 0], [1, 0, -1, 0], [0, -1, 0, 1]])
_PIXELS = np.array([[1, 1, 1, 0], [1, -1, 0, 1]])
_CHANNELS = st.sampled_from((8, 33, 256))
_KINDS = st.sampled_from(("random", "largest", "least", "turns"))


def _extremes(channels: int, kind: str) -> tuple[Array, Array]:
    """Weights of two outputs, and the inputs of a tile at their ends."""
    rng = np.random.default_rng(channels)
    shape = (2, 3, 3, channels)
    weights = {
        "random": rng.integers(-128, 128, shape),
        "largest": np.full(shape, 127),
        "least": np.full(shape, -128),
        "turns": np.where(np.arange(18 * channels).reshape(shape) % 2, 127, -128),
    }[kind].astype(np.int8)
    return weights, rng.choice(np.array([-128, 127]), (4, 4, channels))


def _direct(weights: Array, window: Array) -> Array:
    sums: Array = (weights.astype(np.int64) * window.astype(np.int64)).sum(axis=(1, 2, 3))
    return sums


@settings(max_examples=40, deadline=None)
@given(_CHANNELS, _KINDS)
def test_sums_are_four_times_those_of_windows(channels: int, kind: str) -> None:
    """All in int32, whatever the weights, for inputs at their ends."""
    weights, x = _extremes(channels, kind)
    u = winograd.transformed(weights)
    assert winograd.fits(u)
    v = np.einsum("ir,rsc,js->ijc", _INPUTS, x, _INPUTS).reshape(16, channels)
    assert np.abs(v).max() <= 512 and np.abs(u).max() <= 1152
    products = np.einsum("kpc,pc->kp", u.astype(np.int32), v.astype(np.int32)).reshape(2, 4, 4)
    sums = np.einsum("ai,kij,bj->kab", _OUTPUTS, products, _OUTPUTS)
    for row, column in np.ndindex(2, 2):
        direct = _direct(weights, x[row : row + 3, column : column + 3])
        np.testing.assert_array_equal(sums[:, row, column], 4 * direct)


@settings(max_examples=40, deadline=None)
@given(_CHANNELS, _KINDS)
def test_sums_along_rows_are_twice_those_of_windows(channels: int, kind: str) -> None:
    """The same for three rows, of which each is transformed by itself."""
    weights, x = _extremes(channels, kind)
    u = winograd_rows.transformed(weights)
    assert winograd_rows.fits(u)
    v = np.einsum("jc,rcn->jrn", _ROW, x[:3])
    assert np.abs(v).max() <= 256 and np.abs(u).max() <= 384
    u = u.reshape(2, 4, 3, -1)[..., :channels].astype(np.int32)
    products = np.einsum("kprc,prc->kp", u, v.astype(np.int32))
    sums = np.einsum("aj,kj->ka", _PIXELS, products)
    for column in range(2):
        direct = _direct(weights, x[:3, column : column + 3])
        np.testing.assert_array_equal(sums[:, column], 2 * direct)


def test_a_sum_that_could_leave_32_bits_is_found() -> None:
    """The bound is reached by weights of one sign, in channels enough."""
    weights = np.full((1, 3, 3, 1), -128, np.int8)
    positions = winograd.transformed(weights).astype(np.int64)
    # Rows of positions of such weights are 2, 3, 1 and 2 of them; an output has three of each.
    most = ((1 << 31) - 1) // (512 * 36 * 128)
    for channels, fits in ((most, True), (most + 1, False)):
        assert winograd.fits(np.repeat(positions, channels, axis=2).astype(np.int16)) is fits
    # Rows have 3, 1 and 2 of them at the positions of an output, each row of three.
    most = ((1 << 31) - 1) // (256 * 3 * 6 * 128)
    for channels, fits in ((most, True), (most + 1, False)):
        assert (
            winograd_rows.fits(
                winograd_rows.transformed(np.full((1, 3, 3, channels), -128, np.int8))
            )
            is fits
        )


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


@pytest.mark.parametrize(
    ("kernel", "width", "outputs", "refusal"),
    [
        (ROWS, 8, 2, None),
        (ROWS, 7, 2, Refusal.SIZES),
        (FEW, 4, 4, None),
        (FEW, 3, 4, Refusal.SIZES),
        (FEW, 8, 3, Refusal.FEW_CHANNELS),
    ],
)
def test_rows_take_narrow_images_and_few_channels(
    kernel: str, width: int, outputs: int, refusal: Refusal | None
) -> None:
    """Four tiles of a row and two channels, or two tiles and four channels."""
    layer = linear(Conv2D(padding=SAME), (1, 3, width, 16), (outputs, 3, 3, 16))
    assert dict(refusals(layer, config_for("cortex-m4"))).get(kernel) is refusal


def test_transformed_weights_are_stated() -> None:
    """32 or 24 bytes for each pair of channels, which are charged but at the goal of speed."""
    layer = linear(Conv2D(padding=SAME), IMAGE, (16, 3, 3, 32))
    offered = {c.kernel: c for c in candidates(layer, config_for("cortex-m4"))}
    stated = [offered[kernel].weight_bytes for kernel in (NAME, ROWS, FEW)]
    assert stated == [32 * 16 * 32 + 8 * 36, 24 * 16 * 32 + 8 * 36, 24 * 16 * 32 + 4 * 68]
    scratch = [offered[kernel].scratch_bytes for kernel in (NAME, ROWS, FEW)]
    assert scratch == [168 * 32, 106 * 32, 54 * 32]
    assert config_for("cortex-m4").optimize is Optimize.SPEED


@pytest.mark.parametrize(
    ("channels", "outputs", "height", "band", "whole"),
    [(32, 16, 8, 2, 0), (32, 16, 8, 4, 0), (10, 5, 8, 4, 0), (32, 16, 8, 4, 2), (32, 16, 3, 4, 1)],
)
def test_weights_that_are_transformed_at_run_time_are_those_of_the_model(
    channels: int, outputs: int, height: int, band: int, whole: int
) -> None:
    """In whole words; scratch is for the tiles of a band, or of a call for fewer rows."""
    layer = linear(Conv2D(padding=SAME), (1, height, 20, channels), (outputs, 3, 3, channels))
    kernel = f"{NAME}_bands_{band}"
    offered = {c.kernel: c for c in candidates(layer, config_for("cortex-m4", kernel))}
    assert kernel not in {c.kernel for c in candidates(layer, config_for("cortex-m4"))}
    made = offered[kernel]
    words = -(-channels // 4) * 4
    assert made.weight_bytes == outputs * 9 * words + -(-outputs // 2) * 36
    lines = -(-min(band, whole or height) // 2)
    scratch = made.scratch[CALLS.index(Calls(whole, alone=True))]
    assert scratch == (128 * 3 * lines + 64) * words  # three blocks of a row of 20 pixels


@pytest.mark.parametrize(
    ("kernel", "width"), [(NAME, 29), (f"{NAME}_bands_4", 29), (ROWS, 29), (FEW, 14)]
)
def test_windows_are_known_to_stay_in_the_image(kernel: str, width: int) -> None:
    """Also where the last block of a row begins earlier: the checker follows it to no byte more."""
    layer = linear(Conv2D(padding=SAME), (1, 3, width, 8), (4, 3, 3, 8))
    config = config_for("cortex-m4", kernel)
    (offered,) = (c for c in candidates(layer, config) if c.kernel == kernel)
    function = emitted(PlannedOperator(layer, offered), {})
    x = function.params[0]
    spans = [span for row in Footprints().of(function, (0, 3)) for span in row if span.param is x]
    assert max(span.stop for span in spans) == 3 * width * 8
