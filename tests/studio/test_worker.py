"""Workers: whatever a model makes of one, the page gets a sentence and the server goes on."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import time
from multiprocessing import util
from pathlib import Path
from typing import Any

import pytest

from microtir.studio import app
from microtir.studio.events import Job
from microtir.studio.limits import WorkerLimits
from microtir.studio.models import ModelStore
from microtir.studio.worker import Worker, load_compiler
from tests.support.odd_jobs import Defective, Dying, Endless, Greedy, Littering, Quick
from tests.support.studio_server import served

LIMITS = WorkerLimits(60)


def told(job: Job, limits: WorkerLimits) -> list[dict[str, Any]]:
    """Run a job and return its events."""

    async def run() -> list[dict[str, Any]]:
        return [json.loads(event) async for event in Worker(job, limits).events()]

    return asyncio.run(run())


def is_gone(number: int) -> bool:
    """Whether a process has ended, perhaps within a moment."""
    for _ in range(100):
        try:
            with open(f"/proc/{number}/stat", encoding="ascii") as file:  # noqa: PTH123
                if file.read().split()[2] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


def test_what_starts_workers_listens_where_its_owner_alone_comes() -> None:
    """Pythons before 3.10.9, and 3.11.0, gave its socket no file where the system needs none."""
    load_compiler()
    assert not util.abstract_sockets_supported
    assert stat.S_IMODE(Path(util.get_temp_dir()).stat().st_mode) == 0o700


def test_jobs_that_end_at_the_same_time_all_have_their_results() -> None:
    """To start a worker looks for those that have ended, as whoever waits for one does."""

    async def in_turn() -> list[bytes]:
        return [event for _ in range(20) async for event in Worker(Quick(), LIMITS).events()]

    async def side_by_side() -> list[list[bytes]]:
        return await asyncio.gather(*(in_turn() for _ in range(4)))

    load_compiler()
    assert asyncio.run(side_by_side()) == [[b'{"event": "done"}'] * 20] * 4


def test_a_job_that_is_killed_is_told() -> None:
    """The sentence has the signal, the limit, and what to do; what it started has ended, too."""
    numbers, error = told(Dying(), WorkerLimits(60))
    assert all(map(is_gone, numbers["numbers"]))
    assert error["what"] == (
        "the compiler's process ended with signal SIGKILL before it had a result"
    )
    assert "more than 4 GiB of memory" in error["fix"]


class Asked:
    """What is asked for, whatever it is: a job that is killed."""

    def __init__(self, _name: str, _body: bytes) -> None:
        pass

    def job(self, _models: ModelStore) -> Job:
        return Littering()


def test_what_a_killed_job_leaves_is_removed_with_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its temporary files lie in the folder of the server."""
    monkeypatch.setattr(app, "read_ask", Asked)
    with served() as page:
        told_folder, error = page.ask("plan")
        folder = Path(told_folder["folder"])
        assert error["event"] == "error" and folder.is_dir()
    assert not folder.parent.exists()


def test_a_job_that_takes_too_long_is_stopped() -> None:
    """With all that it started."""
    numbers, error = told(Endless(), WorkerLimits(1.0))
    assert error["what"] == "the compilation did not end in 1 seconds, and was stopped"
    assert all(map(is_gone, numbers["numbers"]))


def test_a_job_has_a_limit_of_memory() -> None:
    """More than that is refused by the system, and told as a sentence."""
    (error,) = told(Greedy(), WorkerLimits(60, memory=2 << 30))
    assert error["what"] == "the model needs more than 2 GiB of memory to compile"


def test_a_defect_is_told() -> None:
    """In the words of the command line."""
    (error,) = told(Defective(), WorkerLimits(60))
    assert error["what"] == "internal error, a defect of microtir: ZeroDivisionError: by nothing"
    assert "please report it" in error["fix"]


def test_a_page_that_has_gone_ends_the_work() -> None:
    """Nobody would read what comes of it."""

    async def run() -> list[int]:
        worker = Worker(Endless(), WorkerLimits(60))
        events = worker.events()
        first: dict[str, list[int]] = json.loads(await anext(events))
        await events.aclose()
        return first["numbers"]

    numbers = asyncio.run(run())
    assert os.getpid() not in numbers
    assert all(map(is_gone, numbers))
