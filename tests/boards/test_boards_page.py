"""docs/boards.md: its program runs, its board file and its manifest are read."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from microtir.boards import ProjectType, load_board
from microtir.projects.template import ProjectTemplates

ROOT = Path(__file__).resolve().parents[2]


def _blocks(language: str) -> list[str]:
    text = (ROOT / "docs" / "boards.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_program_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's program generates, builds, runs and measures."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(ROOT)
    (program,) = _blocks("python")
    program = program.replace('"build/', f'"{tmp_path}/')
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(program, "docs/boards.md", "exec"), {})
    lines = output.getvalue().splitlines()
    assert lines[0].startswith("0 digits sample 0 probabilities = ")
    assert any(re.fullmatch(r"\d+ instructions on QEMU, \d+ bytes of stack", ln) for ln in lines)
    assert any(re.fullmatch(r"digits_run \d+", line) for line in lines)


def test_board_of_the_page(tmp_path: Path) -> None:
    """The page's board is one that microtir reads."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "board.toml").write_text(_blocks("toml")[0])
    board = load_board("mine", [tmp_path])
    assert board.flasher is not None
    assert board.emulator is not None
    assert board.support(ProjectType.BAREMETAL).semihosting


def test_manifest_of_the_page(tmp_path: Path) -> None:
    """The page's manifest is the one of bare-metal projects, but for its summary."""
    (tmp_path / "baremetal").mkdir()
    (tmp_path / "baremetal" / "template.toml").write_text(_blocks("toml")[1])
    shown = ProjectTemplates(tmp_path).manifest(ProjectType.BAREMETAL)
    real = ProjectTemplates(None).manifest(ProjectType.BAREMETAL)
    assert (shown.parts, shown.build, shown.program) == (real.parts, real.build, real.program)
