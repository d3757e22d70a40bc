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


def attack_and_shrink(
    steps: Sequence[Step],
    attack: Callable[[Sequence[Step]], None],
    model_of: Callable[[Sequence[Step]], bytes],
    file: str,
) -> None:
    """Attack with a graph; if it fails, name the smallest graph that does, and keep its file.

    Raises:
        AssertionError: the graph ends in anything but equal results or a refusal in words.
    """
    try:
        attack(steps)
    except Exception as error:
        fewest = shrink(steps, lambda fewer: _fails(fewer, attack))
        path = keep(file, model_of(fewest))
        raise AssertionError(f"{path.name} fails; make it a case of the tests: {fewest}") from error


def _fails(steps: Sequence[Step], attack: Callable[[Sequence[Step]], None]) -> bool:
    try:
        attack(steps)
    except Exception:  # noqa: BLE001  # whatever it is, it is a failure
        return True
    return False


def keep(name: str, model: bytes) -> Path:
    """Write the file of a failing graph, so that it can become a case of the tests."""
    REPRODUCERS.mkdir(parents=True, exist_ok=True)
    path = REPRODUCERS / name
    path.write_bytes(model)
    return path
