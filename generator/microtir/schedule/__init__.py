"""Schedules: checked rewrites of loop nests."""

from microtir.schedule.program import Loop, Stage
from microtir.schedule.schedule import Schedule
from microtir.schedule.tensorize import KernelDescription

__all__ = ["KernelDescription", "Loop", "Schedule", "Stage"]
