"""The page docs/te.md does what it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from microtir.schedule import Schedule

PAGE = Path(__file__).parents[2] / "docs" / "te.md"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    """Language and content of every code block of the page."""
    return [(match[1], match[2]) for match in BLOCK.finditer(PAGE.read_text())]


def test_code_of_the_page_runs_and_prints_what_it_shows() -> None:
    """The Python blocks run in order, and each text block is what the one before it printed."""
    namespace: dict[str, object] = {}
    printed, runs, shown = "", 0, 0
    for language, content in blocks():
        if language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(content, PAGE.name, "exec"), namespace)
            printed = out.getvalue()
            runs += 1
        else:
            assert printed.strip() == content.strip()
            shown += 1
    assert (runs, shown) == (9, 6)


@pytest.mark.parametrize("step", re.findall(r"^\| `(\w+)\(", PAGE.read_text(), re.MULTILINE))
def test_every_step_of_the_table_exists(step: str) -> None:
    """The table of steps names methods of Schedule."""
    assert callable(getattr(Schedule, step))
