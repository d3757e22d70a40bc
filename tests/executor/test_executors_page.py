"""docs/executors.md: its programs are written, compiled and run as the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.pages import ROOT, follow, shown

PAGE = "executors.md"


def test_the_page_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each C file of the page is there under its name; what is printed is what is shown."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / PAGE).read_text(encoding="utf-8")
    for block in re.findall(r"^```c\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        name = block.split()[1].removesuffix(":")
        (tmp_path / name).write_text(block, encoding="utf-8")
    printed = follow(PAGE, tmp_path)
    assert [line.strip() for line in printed.splitlines()] == shown(PAGE)
    nodes = (tmp_path / "nodes.txt").read_text().splitlines()
    assert nodes[0].startswith("0 ") and all(line.endswith(" took 1") for line in nodes)
