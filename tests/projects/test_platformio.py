"""PlatformIO projects: manifests checked, library and application compiled as PlatformIO would."""

from __future__ import annotations

import configparser
import json
import re
import subprocess
from pathlib import Path

import pytest

from microtir.boards import Label, ProjectType, all_boards, load_board
from microtir.boards.errors import MissingToolError
from microtir.config import Feature
from microtir.projects import generate
from tests.support.board_projects import digits
from tests.support.pages import follow

BOARDS = {
    board.name: support
    for board in all_boards()
    for support in board.projects
    if support.type is ProjectType.PLATFORMIO
}


@pytest.mark.parametrize("name", BOARDS)
def test_project_of_every_board(name: str, tmp_path: Path) -> None:
    """library.json and platformio.ini have the fields that PlatformIO asks for, of this board."""
    target = load_board(name).target
    artifact = digits(str(target) if target.has(Feature.AVR_PROGMEM) else "c")
    project = generate(artifact, name, "platformio", tmp_path / "p")
    library = project.folder / "lib" / "digits_models"
    manifest = json.loads((library / "library.json").read_text())
    assert list(manifest) == [
        *("name", "version", "description", "keywords", "frameworks", "platforms", "headers"),
        "build",
    ]
    assert re.fullmatch(r"[a-z][a-z0-9_]{1,63}", manifest["name"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", manifest["version"])
    assert (library / manifest["build"]["includeDir"] / manifest["headers"]).is_file()
    settings = configparser.ConfigParser()
    settings.read(project.folder / "platformio.ini")
    assert dict(settings["env:board"]) == {
        "platform": BOARDS[name].platform,
        "board": BOARDS[name].board,
        "framework": "arduino",
        "monitor_speed": "115200",
        "build_flags": "-ffp-contract=off",
    }
    assert manifest["platforms"] == BOARDS[name].platform
    assert settings["platformio"]["default_envs"] == "board"
    assert project.program == ".pio/build/board/firmware.elf"


def test_files_compile(tmp_path: Path) -> None:
    """Each file finds its headers where PlatformIO looks: src of the library, its own folder."""
    project = generate(digits("c -mcpu=atmega328p"), "uno", "platformio", tmp_path / "p")
    folders = ["-Ilib/digits_models/src"]
    sources = sorted(path for path in project.folder.rglob("*.c"))
    assert len(sources) == 6
    command = ["avr-gcc", "-mmcu=atmega328p", "-std=gnu11", "-Wall", "-Wextra", "-Werror", *folders]
    for source in sources:
        subprocess.run(
            [*command, "-c", str(source), "-o", str(tmp_path / f"{source.stem}.o")],
            cwd=project.folder,
            check=True,
        )


def test_labels() -> None:
    """No board claims more than was done: nothing was built with PlatformIO."""
    assert BOARDS
    assert {support.label for support in BOARDS.values()} == {Label.CHECKED}


def test_missing_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without PlatformIO, building says how to install it."""
    project = generate([], "uno", "platformio", tmp_path / "p")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingToolError, match="pio is not on this machine") as caught:
        project.build()
    assert caught.value.fix is not None
    assert "pip install platformio" in caught.value.fix


def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What docs/projects/platformio.md says about generating works; the rest needs PlatformIO."""
    monkeypatch.chdir(tmp_path)
    follow("projects/platformio.md", tmp_path)
    assert (tmp_path / "build/digits_project/lib/digits_models/library.json").is_file()
