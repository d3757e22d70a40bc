"""Schedules: checked rewrites of loop nests."""

from microtir.schedule.program import Loop, Stage
from microtir.schedule.schedule import Schedule

__all__ = ["Loop", "Schedule", "Stage"]
