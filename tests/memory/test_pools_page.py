"""docs/memory-pools.md: what it prints is what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pages import follow, shown


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/memory-pools.md does what it says."""
    monkeypatch.chdir(tmp_path)
    printed = follow("memory-pools.md", tmp_path).splitlines()
    assert printed == shown("memory-pools.md")
