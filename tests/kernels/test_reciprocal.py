"""1 / (1 + x) of softmax without the saturations that gemmlowp has in its steps."""

from __future__ import annotations

import numpy as np

from microtir.operators.common.fixed_point import constant, one_over_one_plus_x
from microtir.operators.common.fixed_point import saturating_rounding_doubling_high_mul as high_mul

LOW, HIGH = -(1 << 30), (1 << 31) - 1


def fractions() -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """The ends of the range, their neighbours, and a million numbers between them."""
    ends = np.concatenate([np.arange(LOW, LOW + 1000), np.arange(HIGH - 1000, HIGH + 1)])
    inside = np.random.default_rng(7).integers(LOW, HIGH, 1 << 20)
    return np.concatenate([ends, np.arange(-1000, 1000), inside])


def test_corrections_leave_room_for_their_shift() -> None:
    """A correction times 4, added to its estimate, is an int32; the result is gemmlowp's."""
    x = fractions()
    half = (x >> 1) + (1 << 30)
    estimate = constant(48 / 17, 2) + high_mul(half, constant(-32 / 17, 2))
    for _ in range(3):
        correction = high_mul(estimate, (1 << 29) - high_mul(half, estimate)) * 4
        assert np.abs(correction).max() < 1 << 30
        estimate = estimate + correction
        assert estimate.min() > 0 and estimate.max() <= HIGH
    whole = x >= 0
    found = np.minimum(estimate[whole] * 2, HIGH)
    np.testing.assert_array_equal(found, one_over_one_plus_x(x[whole]))
