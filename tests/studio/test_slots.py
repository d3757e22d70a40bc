"""How many jobs work at a time."""

from __future__ import annotations

import asyncio
import os

import pytest

from microtir.studio.jobs.boards import Boards
from microtir.studio.jobs.code import Code
from microtir.studio.jobs.frontier import FrontierSearch
from microtir.studio.jobs.planning import Planning
from microtir.studio.plan import Plan
from microtir.studio.slots import Slots
from tests.support.studio_server import EXAMPLE

PLAN = Plan(EXAMPLE, None, "cortex-m4", "balanced", None)


def test_a_plan_waits_for_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the boards of two tabs in work on two cores, a third search waits, and a plan begins."""
    monkeypatch.setattr(os, "cpu_count", lambda: 2)

    async def run() -> list[bool]:
        slots = Slots()
        boards = slots.of(Boards(EXAMPLE, "balanced"))
        async with boards, boards:
            jobs = (FrontierSearch(PLAN), Planning(PLAN, None), Code(PLAN))
            return [slots.of(job).locked() for job in jobs]

    assert asyncio.run(run()) == [True, False, False]
