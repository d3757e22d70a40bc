"""Compare choices by several figures, each of which is better when it is less."""

from __future__ import annotations

from collections.abc import Sequence


def beats(mine: Sequence[float], its: Sequence[float]) -> bool:
    """Return whether figures are nowhere larger than others, and less in one of them."""
    return mine != its and all(a <= b for a, b in zip(mine, its, strict=True))
