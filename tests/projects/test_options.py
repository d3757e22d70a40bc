"""Options that not every type of project has a place for, and templates of a user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from microtir.artifact import SBOM_FILE
from microtir.boards import ProjectType
from microtir.boards.errors import ProjectError
from microtir.errors import OutputError
from microtir.projects import ProjectOptions, generate, load_project
from tests.support.board_projects import digits, is_left_alone

# A board for each type, and the file that must hold a definition.
PLACES = {
    ProjectType.BAREMETAL: ("mps2_an386", "Makefile"),
    ProjectType.CMAKE: ("host", "CMakeLists.txt"),
    ProjectType.ZEPHYR: ("mps2_an385", "module/CMakeLists.txt"),
    ProjectType.ESP_IDF: ("esp32_devkitc", "components/digits_models/CMakeLists.txt"),
    ProjectType.PLATFORMIO: ("nano33ble", "platformio.ini"),
}

FRAMEWORKS = [kind for kind in ProjectType if kind is not ProjectType.BAREMETAL]


@pytest.mark.parametrize("kind", PLACES)
def test_definitions_are_honoured(kind: ProjectType, tmp_path: Path) -> None:
    """A macro reaches the compiler of every type that says so."""
    board, file = PLACES[kind]
    options = ProjectOptions(definitions=["PROBE=7"])
    project = generate(digits("c"), board, kind, tmp_path / "p", options=options)
    assert "PROBE=7" in (project.folder / file).read_text()


def test_definitions_without_a_place(tmp_path: Path) -> None:
    """Arduino has no place for macros in a library: they are refused, and nothing is written."""
    options = ProjectOptions(definitions=["PROBE=7"])
    with pytest.raises(ProjectError, match=r"is \['PROBE=7'\].*do not accept this") as caught:
        generate(digits("c"), "nano33ble", "arduino", tmp_path / "p", options=options)
    assert caught.value.where == "options.definitions"
    assert "platform.local.txt" in (caught.value.fix or "")
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize("kind", FRAMEWORKS)
def test_optimization_is_the_frameworks(kind: ProjectType, tmp_path: Path) -> None:
    """Frameworks choose the compiler's optimisation themselves."""
    board = PLACES.get(kind, ("nano33ble", ""))[0]
    with pytest.raises(ProjectError, match="is '-Os'"):
        generate(
            digits("c"), board, kind, tmp_path / "p", options=ProjectOptions(optimization="-Os")
        )


@pytest.mark.parametrize("kind", ProjectType)
def test_project_is_loaded_again(kind: ProjectType, tmp_path: Path) -> None:
    """A project of every type is the same when it is opened, and is not overwritten by accident."""
    board = PLACES.get(kind, ("nano33ble", ""))[0]
    made = generate(digits("c"), board, kind, tmp_path / "p")
    loaded = load_project(made.folder)
    assert (loaded.type, loaded.models, loaded.program) == (made.type, made.models, made.program)
    assert (loaded.build_step, loaded.flash_step) == (made.build_step, made.flash_step)
    before = {
        path.relative_to(made.folder).as_posix(): path.read_bytes()
        for path in made.folder.rglob("*")
        if path.is_file()
    }
    with pytest.raises(OutputError, match="exists and is not empty"):
        generate([], board, kind, made.folder)
    assert is_left_alone(made.folder, before)


@pytest.mark.parametrize("kind", ProjectType)
def test_templates_of_a_user(kind: ProjectType, tmp_path: Path) -> None:
    """A file of the same path in the user's folder replaces a template of any type."""
    board = PLACES.get(kind, ("nano33ble", ""))[0]
    plain = generate(digits("c"), board, kind, tmp_path / "plain")
    mine = tmp_path / "templates" / "application"
    mine.mkdir(parents=True)
    (mine / "text.h").write_text("/* mine */\n")
    project = generate(
        digits("c"), board, kind, tmp_path / "p", template_dir=tmp_path / "templates"
    )
    (changed,) = project.folder.rglob("text.h")
    assert changed.read_text() == "/* mine */\n"
    differ = ("text.h", SBOM_FILE)  # the bill has the digest of the file
    others = [
        path for path in plain.folder.rglob("*") if path.is_file() and path.name not in differ
    ]
    for path in others:
        assert (project.folder / path.relative_to(plain.folder)).read_bytes() == path.read_bytes()
