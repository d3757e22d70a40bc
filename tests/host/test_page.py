"""docs/host.md: its program runs and prints what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pages import follow


def test_page_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program of the page runs the example model on this machine."""
    monkeypatch.chdir(tmp_path)
    assert "(1, 10)" in follow("host.md", tmp_path)
