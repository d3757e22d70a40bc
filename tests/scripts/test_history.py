"""Figures over commits: what a page of the site reads from git."""

from __future__ import annotations

import json
import re
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

from scripts.product.history import BOARD, PAGE, PLACE, ROOT, TABLES, Point, history, line, tables

VALUES = (100, 100, 50, 75)


def git(folder: Path, *arguments: str) -> None:
    """Run git as somebody."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def record(folder: Path, value: int) -> None:
    """Write the figures of one model."""
    sizes = {"code": value, "weights": 1000, "workspace": 2 * value}
    boards = {BOARD: {"gcc": {"net<1>": {"instructions": 1000 * value}}}, "other": {}}
    (folder / "benchmarks").mkdir(exist_ok=True)
    (folder / "benchmarks" / "boards.json").write_text(json.dumps(boards))
    (folder / "benchmarks" / "recorded.json").write_text(json.dumps({"net<1>": sizes}))


def rows(page: str) -> list[list[str]]:
    """Return the texts of the cells but that of the picture, of all rows of a page."""
    found = re.findall(r"<tr>.*</tr>", page)
    cells = [
        ["".join(c.itertext()) for c in ET.fromstring(r) if not c.findall("svg")] for r in found
    ]
    return [row for row in cells if row[0] != "Model"]


def test_figures_of_all_commits_are_shown(tmp_path: Path) -> None:
    """Each change is a point, what is not committed the last; a figure that stays is none."""
    git(tmp_path, "init")
    for value in VALUES[:-1]:
        record(tmp_path, value)
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "--allow-empty", "-m", "figures")
    record(tmp_path, VALUES[-1])
    page = tables(tmp_path)
    changes = [tuple(row[2:]) for row in rows(page)]
    assert changes == [
        ("100,000", "75,000", "-25.0 %"), ("1,100", "1,075", "-2.3 %"), ("200", "150", "-25.0 %"),
    ]  # fmt: skip
    assert page.count("<circle") == 3 * 3
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--depth", "1", tmp_path.as_uri(), str(shallow))
    assert [row[3] for row in rows(tables(shallow))] == ["50,000", "1,050", "100"]
    assert tables(shallow).count("<circle") == 3


def test_without_git_there_are_the_figures_of_the_day(tmp_path: Path) -> None:
    """A tree that is no repository has one point for each model."""
    record(tmp_path, 7)
    assert [row[3:] for row in rows(tables(tmp_path))] == [
        ["7,000", "+0.0 %"], ["1,007", "+0.0 %"], ["14", "+0.0 %"],
    ]  # fmt: skip


def test_a_line_has_a_step_for_each_point() -> None:
    """Larger is higher, the largest highest; a reader of screens says what it shows."""
    points = [Point("a", "2026-01-01", 10), Point("b", "2026-01-02", 20), Point("", "today", 5)]
    picture = ET.fromstring(line("net", points))
    heights = [float(dot.get("cy", "")) for dot in picture.findall("circle")]
    assert heights[1] < heights[0] < heights[2]
    assert picture.get("aria-label") == "net: 10 to 5"


def test_the_page_shows_all_models_of_today() -> None:
    """The page has one place for the tables, and figures of this tree for its models."""
    assert (ROOT / "docs" / PAGE).read_text("utf-8").splitlines().count(PLACE) == 1
    for _, path, of in TABLES:
        content = json.loads((ROOT / path).read_text("utf-8"))
        shown = history(iter([("", "today", content)]), of)
        assert {"ad01_int8", "kws_int8", "resnet8_int8", "strww_int8", "vww_int8"} <= shown.keys()
