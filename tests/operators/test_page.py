"""The page on adding an operator."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pages import follow


def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator is defined as the page says, and computes what it should."""
    monkeypatch.chdir(tmp_path)
    assert follow("adding-an-operator.md", tmp_path) == ""
