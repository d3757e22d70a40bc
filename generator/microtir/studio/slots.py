"""Decides how many jobs work at a time: a plan, which somebody awaits, waits for no search."""

from __future__ import annotations

import asyncio
import os

from microtir.studio.events import Job
from microtir.studio.jobs.boards import Boards
from microtir.studio.jobs.frontier import FrontierSearch

_LONG = (Boards, FrontierSearch)
"""Jobs that take minutes for a large model, and tell what is known so far."""


class Slots:
    """Places for jobs; those that take long have their own.

    With one kind of place the boards of two tabs, or boards and trades of one, would hold all of
    them on two cores, and a slider that was moved would wait until every board is known.
    """

    def __init__(self) -> None:
        most = max(2, os.cpu_count() or 1)
        self._long, self._short = asyncio.Semaphore(most), asyncio.Semaphore(most)

    def of(self, job: Job) -> asyncio.Semaphore:
        return self._long if isinstance(job, _LONG) else self._short
