"""Random layers that no calibration measured: drawn alike each time, stated as near as recorded."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import unseen
from benchmarks.layers import for_speed
from benchmarks.operators import BOARDS
from microtir import driver
from microtir.boards import load_board

CPU = "cortex-m4"
SAMPLE = (13, 48, 82, 95, 129, 183)  # nests and a convolution


def test_two_hundred_models_are_recorded() -> None:
    """Nothing is measured here; statements that got better are recorded by `--record`."""
    errors = [abs(s.error) for s in unseen.read_recorded()[CPU].values()]
    assert len(errors) == unseen.COUNT
    parts = [np.mean([e <= limit for e in errors]) for limit in unseen.LIMITS]
    assert all(part >= least for part, least in zip(parts, (0.75, 0.87, 0.92), strict=True))


@pytest.mark.parametrize("number", SAMPLE)
def test_stated_is_as_near_as_recorded(number: int) -> None:
    """The model is the one that was measured, and planning states no worse of it."""
    name, module = unseen.drawn(number)
    recorded = unseen.read_recorded()[CPU][name]
    lowered = driver.lower(module.with_configuration(for_speed(load_board(BOARDS[CPU]), "unseen")))
    now = unseen.stated(lowered.require_program("unseen"))
    assert now.kernels == recorded.kernels
    assert abs(now.stated / recorded.instructions - 1) <= abs(recorded.error) + 0.02
