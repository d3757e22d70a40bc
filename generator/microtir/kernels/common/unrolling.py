"""Loops of schedules that are unrolled in parts."""

from __future__ import annotations

from microtir.schedule import Loop, Schedule


def unroll_by(steps: Schedule, loop: Loop, extent: int, turn: int) -> None:
    """Unroll a loop `turn` iterations at a time; copies of what is left stand behind it."""
    whole = extent - extent % turn
    if 0 < whole < extent:
        first, loop = steps.partition(loop, whole)
        steps.unroll(steps.split(first, turn)[1])
    elif whole and turn > 1:
        _, loop = steps.split(loop, turn)
    if turn > 1:
        steps.unroll(loop)
