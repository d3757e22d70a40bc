"""Shrink a graph that fails to the fewest steps which still fail, and write it down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

Step = TypeVar("Step")

REPRODUCERS = Path(__file__).resolve().parents[2] / "build" / "attack"


def shrink(steps: Sequence[Step], fails: Callable[[Sequence[Step]], bool]) -> tuple[Step, ...]:
    """Return steps of which none can be left out, such that the rest still fails.

    Args:
        steps: that fail.
        fails: whether others do; it is asked at most a number of times that grows with the square
            of the number of steps.
    """
    left = tuple(steps)
    number = 0
    while number < len(left):
        fewer = left[:number] + left[number + 1 :]
        if fewer and fails(fewer):
            left, number = fewer, 0
        else:
            number += 1
    return left


def keep(name: str, model: bytes, suffix: str) -> Path:
    """Write the file of a failing graph, so that it can become a case of the tests."""
    REPRODUCERS.mkdir(parents=True, exist_ok=True)
    path = REPRODUCERS / f"{name}{suffix}"
    path.write_bytes(model)
    return path
