"""docs/model-library-format.md: its blocks run in order and print what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pages import follow, shown

pytestmark = pytest.mark.tools  # runs the commands of the page
PAGE = "model-library-format.md"


def test_page_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command and program of the page, and every line that it says is printed."""
    monkeypatch.chdir(tmp_path)
    lines = follow(PAGE, tmp_path).splitlines()
    assert [line for line in shown(PAGE) if line not in lines] == []
