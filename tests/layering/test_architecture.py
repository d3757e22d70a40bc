"""docs/architecture.md is true: its folders and files exist, its steps are the driver's."""

from __future__ import annotations

import re
from pathlib import Path

from microtir.lowering.stages import pipeline

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "generator" / "microtir"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
HOW_TO = [
    (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("adding-an-operator", "kernels")
]
_PATH = re.compile(
    r"`((?:[a-z_0-9]+/)+|(?:[a-z_0-9]+/)*[a-z_0-9]+\.py|(?:[a-z_0-9]+/)+[a-z_0-9]+)`"
)


def test_what_the_page_names_exists() -> None:
    """Every folder and file in backticks is one of the package or of the repository."""
    named = dict.fromkeys(path for page in (PAGE, *HOW_TO) for path in _PATH.findall(page))
    missing = [p for p in named if not (PACKAGE / p).exists() and not (ROOT / p).exists()]
    assert len(named) > 20 and not missing, missing


def test_the_page_names_every_folder() -> None:
    """No folder of the package is left for the reader to find by himself."""
    folders = {p.parent.name for p in PACKAGE.glob("*/__init__.py")}
    assert folders <= {path.split("/")[0] for path in _PATH.findall(PAGE)}


def test_the_steps_stand_in_order() -> None:
    """The numbered steps of the page are those of the driver, in its order."""
    steps = re.findall(r"^\| \d+ \| `(\w+)` \|", PAGE, re.MULTILINE)
    assert steps == [step.name for step in pipeline()]
