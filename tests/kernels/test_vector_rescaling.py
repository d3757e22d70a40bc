"""Vectors of sums below zero are lessened without a mask only if every sum is divided."""

from __future__ import annotations

import pytest

from microtir.kernels.arm_mve.requantise import Rescaling
from microtir.operators.common.linear import LinearParams
from microtir.operators.common.multiplier import QuantizedMultiplier


@pytest.mark.quick
@pytest.mark.parametrize(("shifts", "divides"), [((-1, -31), True), ((-1, 0), False)])
def test_a_channel_that_is_not_divided_keeps_the_mask(
    shifts: tuple[int, ...], *, divides: bool
) -> None:
    """Its negative values would be one less otherwise."""
    factors = tuple(QuantizedMultiplier(1 << 30, shift) for shift in shifts)
    rescaling = Rescaling.of(LinearParams(0, 3, factors, -128, 127))
    assert rescaling.always_divides is divides
    # Kernels that differ must not share a name.
    assert rescaling.name.endswith("_whole") is not divides
