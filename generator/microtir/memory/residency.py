"""Placement over time, for people: which bytes of memory are in use at which step.

A step of a nest is executed many times, and its calls alternate with those of other steps.  Seen
at its own calls only, a buffer of the nest shows when it is in use and what takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from microtir.memory.lifetimes import Lifetime
from microtir.tir.execution import calls
from microtir.tir.ir import Stmt
from microtir.tir.memory_plan import KeptBytes
from microtir.tir.visitor import invokes_of

Steps = npt.NDArray[np.int64]
"""The step (position of the Invoke in program order) that each moment executes."""


@dataclass(frozen=True, slots=True)
class Peak:
    """The first moment at which the buffers keep most bytes, and its step."""

    moment: int
    step: int


def steps_of(body: Stmt) -> Steps:
    """Return the step of each moment of main."""
    numbers: dict[int, int] = {}
    for number, invoke in enumerate(invokes_of(body)):
        numbers.setdefault(id(invoke), number)
    return np.array([numbers[id(call)] for call, _ in calls(body)], np.int64)


def peak_of(lives: Sequence[Lifetime], steps: Steps) -> Peak:
    """Return where most bytes are kept; the first step if there is nothing to keep."""
    total = np.zeros(len(steps), np.int64)
    for life in lives:
        total[life.begin : life.end] += life.counted
    moment = int(total.argmax()) if len(total) else 0
    return Peak(moment, int(steps[moment]) if len(steps) else 0)


def kept_at(life: Lifetime, moment: int) -> int:
    """Return the bytes that a buffer keeps at a moment."""
    if not life.begin <= moment < life.end:
        return 0
    return int(life.counted[moment - life.begin])


def kept_bytes(life: Lifetime, steps: Steps) -> tuple[KeptBytes, ...]:
    """Return, per step at whose calls a buffer keeps anything, the extent of all that it keeps."""
    ranges = []
    at = steps[life.begin : life.end]
    for step in sorted(set(at[life.low < life.high].tolist())):
        mine = (at == step) & (life.low < life.high)
        low, high = life.low[mine], life.high[mine]
        first, last = (int(low[0]), int(high[0])), (int(low[-1]), int(high[-1]))
        ranges.append(KeptBytes(step, int(low.min()), int(high.max()), first, last))
    return tuple(ranges)
