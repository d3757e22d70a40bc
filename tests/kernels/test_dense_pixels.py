"""Fully connected layers that are lines of pixels, run by the interpreter of TIR."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from microtir.kernels.common.dense import rows_of
from tests.kernels.test_phases import computed
from tests.support.dsp_cases import (
    DspCase,
    fully_connected,
    in_float_rescaling,
    in_four_bits,
    lines,
    with_wide_weights,
)
from tests.support.kernel_cases import M4


def wide(seed: int) -> DspCase:
    """Draw a layer whose weights have a zero point."""
    return with_wide_weights(seed, fully_connected(seed))


def in_float(seed: int) -> DspCase:
    """Draw a layer whose sums are rescaled in float32."""
    return in_float_rescaling(fully_connected(seed), has_ties=bool(seed % 2))


@pytest.mark.parametrize(
    ("kernel", "make"),
    [
        ("dense_s8_2x4_dsp", lines),
        ("dense_s8_2x4_dsp_compact", in_float),
        ("dense_s8_2x4_dsp", wide),
        ("dense_s8_4x2_dsp", lines),
        ("dense_s4_2x4_dsp", lambda seed: in_four_bits(lines(seed))),
    ],
)
def test_equal_to_the_reference(kernel: str, make: Callable[[int], DspCase]) -> None:
    """Rows of any depth, in blocks of pixels and what is left of them."""
    layers = list(computed(make, kernel, M4, 40))
    assert len(layers) > 8
    assert {layer.inputs[1].shape[1] % 4 for layer in layers} == {0, 3}
    assert {layer.inputs[1].shape[0] % 4 for layer in layers} == {0, 1, 2, 3}
    if make is wide:
        assert any(rows_of(layer) == 1 for layer in layers)
