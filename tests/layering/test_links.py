"""Pages link to what exists, and to the living pages of the decisions only."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DECISIONS = ROOT / "docs" / "decisions"
HISTORY = DECISIONS / "history"
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_of_pages_lead_somewhere(page: Path) -> None:
    """Every link to a file of the repository has that file, and old decisions are history."""
    targets = [t for t in _LINK.findall(page.read_text(encoding="utf-8")) if "://" not in t]
    for target in targets:
        file = (page.parent / target).resolve()
        assert file.exists(), f"{target} does not exist"
        if HISTORY in file.parents and page.parent != HISTORY:
            assert page == DECISIONS / "README.md", f"{target} is history: link the living page"


def test_no_number_of_an_old_decision_is_quoted() -> None:
    """Code and pages name the living page: a number would lead to what once was."""
    files = [
        *PAGES, *(ROOT / "generator").rglob("*.py"), *(ROOT / "tests").rglob("*.py"),
        *(ROOT / "templates").rglob("*.j2"),
    ]  # fmt: skip
    for file in files:
        if HISTORY not in file.parents:
            text = file.read_text(encoding="utf-8")
            assert not re.search(r"\bdecision \d", text), file.relative_to(ROOT)
