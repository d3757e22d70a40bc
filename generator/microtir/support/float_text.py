"""Writes numbers of 32 bits, with the same text in every version of numpy."""

from __future__ import annotations

import numpy as np

_WITH_EXPONENT = 1e6
"""The number from which on numpy writes an exponent since 2.3."""


def float32_text(value: float) -> str:
    """Return the shortest decimal text that reads back as the same float32."""
    single = np.float32(value)
    if np.isfinite(single) and abs(single) >= _WITH_EXPONENT:
        return np.format_float_scientific(single, trim="-", exp_digits=2)
    return str(single)
