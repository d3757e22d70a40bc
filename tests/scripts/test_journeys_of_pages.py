"""The pages that begin in another framework were executed as they stand here."""

from __future__ import annotations

import json

import pytest

from tests.journeys.pages import __main__ as pages
from tests.journeys.pages import follow


@pytest.mark.parametrize("name", pages.PAGES)
def test_recorded_page_is_this_one(name: str) -> None:
    """Its blocks are those that ran, with status 0 and the packages that it is about."""
    recorded = json.loads(pages.RECORDED.read_text("utf-8"))[name]
    advice = f"run `python -m tests.journeys.pages --record {name}`"
    assert recorded["blocks"] == pages.digest(name), advice
    assert recorded["status"] == 0, advice
    assert set(pages.PAGES[name].packages) <= set(recorded["versions"])


def test_shown_lines_are_compared_in_order() -> None:
    """A line that is missing, or comes earlier than the page shows it, is an error."""
    follow.check_shown("b\nd 1 ...\n", "a\nb\nc\nd 1 2\n")
    for shown in ("e\n", "d 1 2\nb\n", "d\n", "d 2...\n"):
        with pytest.raises(AssertionError, match="the page shows"):
            follow.check_shown(shown, "a\nb\nc\nd 1 2\n")


def test_console_blocks_are_commands_with_their_output() -> None:
    """Lines after a command, up to the next one, are what it prints."""
    assert follow.sessions("$ one\nx\ny\n$ two\n") == [("one", "x\ny\n"), ("two", "")]
