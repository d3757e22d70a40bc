"""The journeys were run on what stands here, and nothing differed."""

from __future__ import annotations

import json

from tests.journeys import __main__ as journeys


def test_recorded_journeys_are_of_these_sources() -> None:
    """What they test has not changed since: `make journeys ARGS=--record` repeats them."""
    recorded = json.loads(journeys.RECORDED.read_text("utf-8"))
    assert recorded["sources"] == journeys.digest(), "run `make journeys ARGS=--record`"


def test_nothing_differed() -> None:
    """Each journey ended well, and said how much it compared."""
    recorded = json.loads(journeys.RECORDED.read_text("utf-8"))["journeys"]
    assert sorted(recorded) == sorted(journeys.JOURNEYS)
    assert all(one["status"] == 0 and one["seeds"] and one["summary"] for one in recorded.values())


def test_sources_of_both_front_ends_count() -> None:
    """A pattern that matches nothing would let them change."""
    folders = {path.parent.name for path in journeys.tested_files()}
    assert {"torch", "keras", "journeys", "dense", "common"} <= folders
