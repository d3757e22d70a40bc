"""`make replay` sees a changed byte, and nothing where there is none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from scripts.replay.__main__ import compare
from scripts.replay.cases import EXECUTORS, GOALS, Case, full_cases, quick_cases
from scripts.replay.trees import ROOT, Tree

CASES = (Case("odd:1", "c", "ram"), Case("odd:1", "c", "ram", "graph"))


def tree(folder: Path) -> Tree:
    """A copy of what compiling needs."""
    for name in ("generator", "templates", "runtime_crt", "boards", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return Tree(folder, None)


def test_the_same_tree_shows_no_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two compilations of one state, in two folders, are equal to the byte."""
    one = tree(tmp_path / "one")
    (tmp_path / "scratch").mkdir()
    assert compare(one, Tree(ROOT, None), CASES, tmp_path / "scratch") == 0
    assert capsys.readouterr().out.startswith("replay: 2 cases, ")


def test_a_changed_template_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One word in the template of the source file is found, with the lines that differ."""
    other = tree(tmp_path / "other")
    template = next((other.folder / "templates").rglob("source.c.j2"))
    template.write_text(template.read_text() + "/* one more line */\n")
    (tmp_path / "scratch").mkdir()
    assert compare(Tree(ROOT, None), other, CASES, tmp_path / "scratch") == 1
    printed = capsys.readouterr().out
    assert "replay: 2 of 2 cases differ" in printed
    assert "+/* one more line */" in printed


def test_cases_are_named_once(tmp_path: Path) -> None:
    """Outcomes are kept by key: two cases of one key would hide each other."""
    keys = [case.key for case in full_cases(tmp_path)]
    assert len(keys) == len(set(keys))


def test_the_sample_has_everything_once(tmp_path: Path) -> None:
    """The quick replay leaves out combinations, and no model, target, goal or executor."""
    for number in range(9):
        (tmp_path / f"model{number}.tflite").write_bytes(bytes(50_000))
    every, quick = full_cases(tmp_path), quick_cases(tmp_path)
    assert len(quick) * 8 < len(every)
    assert set(quick) <= set(every)
    assert {c.model for c in quick} == {c.model for c in every}
    assert {c.target for c in quick} == {c.target for c in every}
    assert {c.goal for c in quick} == set(GOALS)
    assert {c.executor for c in quick} == set(EXECUTORS)
