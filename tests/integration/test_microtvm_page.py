"""docs/from-microtvm.md: its commands and programs run, and print what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pages import follow, shown

PAGE = "from-microtvm.md"


def test_page_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command, program and application of the page, and every line that it shows."""
    monkeypatch.chdir(tmp_path)
    lines = follow(PAGE, tmp_path).splitlines()
    assert [line for line in shown(PAGE) if line not in lines] == []
