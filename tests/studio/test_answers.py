"""What was answered before is answered at once while it is true, and takes a limited place."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from microtir.studio import app as studio_app
from microtir.studio.answers import Answers
from microtir.studio.events import Job
from microtir.studio.jobs.inspection import Inspection
from microtir.studio.limits import WorkerLimits
from microtir.studio.models import ModelFile
from microtir.studio.worker import Worker
from tests.support.command import INT8
from tests.support.studio_server import EXAMPLE, served

NUMBERS = [Inspection(replace(EXAMPLE, label=str(number))) for number in range(4)]


def event(kind: str, text: str = "") -> bytes:
    """Return an event as a worker tells it."""
    return json.dumps({"event": kind, "text": text}).encode()


def test_the_last_of_each_kind_is_kept() -> None:
    """A table that grows is kept once; what was done on the way is not."""
    answers, job = Answers(), NUMBERS[0]
    told = [event("progress"), event("boards", "1"), event("range"), event("boards", "2")]
    assert answers.find(job) is None
    answers.keep(job, told)
    assert answers.find(job) == (event("boards", "2"), event("range"))
    assert answers.find(NUMBERS[1]) is None
    assert answers.find(Inspection(replace(job.model, state=(1, 2)))) is None


def test_an_error_is_not_kept() -> None:
    """Whatever was told before it; it may have been the machine's."""
    answers = Answers()
    answers.keep(NUMBERS[0], [event("plan"), event("error")])
    answers.keep(NUMBERS[1], [event("progress")])
    assert answers.find(NUMBERS[0]) is answers.find(NUMBERS[1]) is None


def test_the_oldest_give_way() -> None:
    """Those that were asked for again are younger; one that is too large is not kept at all."""
    plan = event("plan", "x" * 100)
    answers = Answers(3 * len(plan))
    for job in (*NUMBERS[:3], NUMBERS[0]):
        answers.keep(job, [plan])
    answers.keep(NUMBERS[3], [plan])
    assert [answers.find(job) is not None for job in NUMBERS] == [True, False, True, True]
    answers.keep(NUMBERS[1], [plan + b" " * 3 * len(plan)])
    assert answers.find(NUMBERS[1]) is None


def test_a_worker_answers_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The same question has the same answer; a file that was written anew is read anew."""
    begun: list[Job] = []

    def counted(job: Job, limits: WorkerLimits) -> Worker:
        begun.append(job)
        return Worker(job, limits)

    monkeypatch.setattr(studio_app, "Worker", counted)
    file = tmp_path / "net.tflite"
    file.write_bytes(INT8.read_bytes())
    with served([ModelFile("net.tflite", file)]) as page:
        first, again = (page.ask("inspect", model=0) for _ in range(2))
        assert first == again and len(begun) == 1
        file.write_bytes(INT8.read_bytes()[:5000])
        (error,) = page.ask("inspect", model=0)
        assert error["event"] == "error" and "outside the file's 5000 bytes" in error["what"]
        assert page.ask("inspect", model=0) == [error] and len(begun) == 3
        file.unlink()
        (error,) = page.ask("inspect", model=0)
        assert error["event"] == "error" and "net.tflite" in error["where"]
