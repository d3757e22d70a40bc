"""Kernels that count state what the emulator counts, of layers that no figure was fitted to."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import calibrate
from microtir.kernels.common.counted import measured_file

pytestmark = [pytest.mark.tools, pytest.mark.compiler_version]

# Around a convolution is more that compilers decide: where addresses are computed anew.
WITHIN = {
    "dense_s8_1x8_dsp": 0.02, "dense_s4_1x8_dsp": 0.02, "dense_s8_2x4_mve": 0.02,
    "conv_s8_2x4_mve": 0.08, "matmul_s8_2x4_dsp": 0.05, "matmul_s8_2x4_mve": 0.05,
}  # fmt: skip


@pytest.mark.parametrize("kernel", WITHIN)
def test_stated_is_what_the_emulator_counts(kernel: str) -> None:
    """Layer by layer; most convolutions are nearer by far."""
    counts = calibrate.kernel_of(kernel)
    figures = json.loads(measured_file(counts.measured_on).read_text("utf-8"))[counts.family]
    layers = calibrate.measure(kernel, range(1000, 1012))
    assert len(layers) > 8
    errors = [abs(layer.error(figures)) for layer in layers]
    assert max(errors) < WITHIN[kernel], errors
    assert float(np.median(errors)) < 0.015, errors


def test_figures_are_fitted_and_not_negative() -> None:
    """What cannot be more than nothing is nothing, and the rest is found again."""
    counts = ({"call": 1, "row": n, "never": n % 2} for n in range(1, 9))
    layers = [
        calibrate.Layer(calibrate.DRAWN["dense_s8_1x8_dsp"](np.random.default_rng(0), "a"), 100, c,
                        100 + 12 + 3 * c["row"] - c["never"])
        for c in counts
    ]  # fmt: skip
    figures = calibrate.fitted(layers)
    assert figures["never"] == 0
    assert figures["row"] == pytest.approx(3, abs=0.2)
