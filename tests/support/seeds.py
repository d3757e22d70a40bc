"""Seeds of random cases: the same in every run of the tests, others in each run of the soak."""

from __future__ import annotations

import os

VARIABLE = "MICROTIR_SOAK_SEED"
_APART = 100_000  # more than any test draws


def is_soak() -> bool:
    """Return whether the soak runs: coverage that fixed seeds have is not asked of others."""
    return VARIABLE in os.environ


def seeds(first: int, count: int) -> range:
    """Return `count` seeds from `first` on or, in the soak, from where its seed says."""
    start = first + int(os.environ.get(VARIABLE, "0")) * _APART
    return range(start, start + count)
