"""docs/tutorial.md: its programs run and print what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pages import follow, shown


def test_every_station_of_the_tutorial_is_as_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One layer, from the bytes of its file to C."""
    monkeypatch.chdir(tmp_path)
    assert follow("tutorial.md", tmp_path).splitlines() == shown("tutorial.md")
