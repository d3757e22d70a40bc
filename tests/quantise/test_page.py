"""docs/quantise.md works as it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pages import follow


@pytest.mark.tools
def test_the_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples, both commands, and a file that is written again."""
    monkeypatch.chdir(tmp_path)
    shown = follow("quantise.md", tmp_path)
    assert "accuracy" in shown and "before" in shown
    assert (tmp_path / "again.tflite").read_bytes()
    assert (tmp_path / "digits" / "digits_float.c").is_file()
