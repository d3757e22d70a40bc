"""Project types that can be built with what is there, and frameworks that are not."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from microtir.boards import ProjectType, all_boards, load_board
from microtir.boards.errors import BuildError, MissingToolError
from microtir.projects import Project, default_type, generate, load_project
from tests.support.board_projects import digits
from tests.support.command import Command

STAND_IN = 'message(FATAL_ERROR "{}")\n'
TOOLS = ("arduino-builder", "cmake", "gcc", "make", "ninja", "arm-none-eabi-gcc", "sh", "avr-gcc")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a home and a PATH with stand-ins for what each project type needs, and no framework."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in TOOLS:
        (folder / name).symlink_to(shutil.which(name) or name)
    (folder / "dtc").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("ZEPHYR_BASE", "Zephyr_DIR", "CMAKE_PREFIX_PATH", "CMAKE_MODULE_PATH"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def zephyr(folder: Path, text: str = "") -> Path:
    """Return a Zephyr that ends every build with a message."""
    package = folder / "zephyr" / "share" / "zephyr-package" / "cmake"
    package.mkdir(parents=True)
    (package / "ZephyrConfig.cmake").write_text(STAND_IN.format(text))
    return folder / "zephyr"


def project(board: str, kind: str, folder: Path) -> Project:
    """Return a project that was written and is opened again."""
    generate(digits("c"), board, kind, folder / "p")
    return load_project(folder / "p")


def test_a_missing_zephyr_is_named(machine: Path) -> None:
    """A build without Zephyr showed CMake's text; the commands that get it are said."""
    made = project("nrf52840dk", "zephyr", machine)
    with pytest.raises(MissingToolError, match=r"^ZEPHYR_BASE: Zephyr is not on this machine") as e:
        made.build()
    assert "west init" in str(e.value) and "west sdk install" in str(e.value)
    assert not (made.folder / "build").exists()


@pytest.mark.parametrize("how", ["variable", "argument", "registry", "package path"])
def test_a_zephyr_that_is_there_is_used(
    how: str, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever CMake finds it: by the environment, by arguments, or where west noted it."""
    made, base = project("nrf52840dk", "zephyr", machine), zephyr(machine, "found")
    arguments = []
    if how == "variable":
        monkeypatch.setenv("ZEPHYR_BASE", str(base))
    elif how == "argument":
        arguments = [f"-DZEPHYR_BASE={base}", f"-DZephyr_DIR={base}/share/zephyr-package/cmake"]
    elif how == "registry":
        notes = machine / ".cmake" / "packages" / "Zephyr"
        notes.mkdir(parents=True)
        (notes / "1").write_text(f"{base}/share/zephyr-package/cmake\n")
    else:
        monkeypatch.setenv("CMAKE_PREFIX_PATH", f"{base}/share/zephyr-package/cmake")
    with pytest.raises(BuildError, match="found"):
        made.build(arguments)


def test_a_missing_sdk_of_zephyr_is_named(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zephyr without a compiler is not enough: its SDK is missing, which the same commands get."""
    made = project("nrf52840dk", "zephyr", machine)
    said = 'Could not find a package configuration file provided by \\"Zephyr-sdk\\"'
    monkeypatch.setenv("ZEPHYR_BASE", str(zephyr(machine, said)))
    with pytest.raises(
        MissingToolError, match=r"Zephyr is installed only in part(.|\n)*west sdk"
    ) as why:
        made.build()
    assert 'provided by "Zephyr-sdk"' in str(why.value), "what CMake said is the cause"


def test_a_folder_without_zephyr_is_named(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ZEPHYR_BASE names a folder that has no Zephyr: neither "not on this machine" nor silence."""
    made = project("nrf52840dk", "zephyr", machine)
    monkeypatch.setenv("ZEPHYR_BASE", str(machine))
    with pytest.raises(MissingToolError, match="Zephyr is not in '") as why:
        made.build()
    assert str(machine) in str(why.value) and "ZephyrConfig.cmake" in str(why.value)


def test_a_missing_arduino_core_is_named(machine: Path) -> None:
    """The core of a board that Debian does not package, with the command that installs it."""
    made = project("due", "arduino", machine)
    with pytest.raises(MissingToolError, match="the Arduino core arduino:sam is not") as caught:
        made.build()
    assert "arduino-cli core install arduino:sam" in str(caught.value)


def test_a_missing_esp_idf_is_named(machine: Path) -> None:
    """The commands that get the ESP-IDF, which are no package of a distribution."""
    with pytest.raises(MissingToolError, match=r"idf\.py is not(.|\n)*git clone(.|\n)*export\.sh"):
        project("esp32_devkitc", "esp-idf", machine).build()


def test_a_project_of_an_earlier_version_is_built(machine: Path) -> None:
    """`project.json` said nothing of frameworks: such a project is opened and built as before."""
    made = project("nrf52840dk", "zephyr", machine)
    path = made.folder / "project.json"
    old, count = re.subn(r',\s*"framework": \{.*?\n    \}', "", path.read_text(), flags=re.DOTALL)
    assert count == 1
    path.write_text(old)
    with pytest.raises(BuildError, match="Zephyr"):
        load_project(made.folder).build()


def test_the_default_type_can_be_built(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first type of most boards needs Zephyr, which few machines have."""
    board = load_board("nrf52840dk")
    choice = default_type(board)
    assert choice.type is ProjectType.CMAKE
    assert [kind for kind, _ in choice.missing] == [ProjectType.ZEPHYR, ProjectType.PLATFORMIO]
    assert "Zephyr is not on this machine" in choice.missing[0][1].what
    monkeypatch.setenv("ZEPHYR_BASE", str(zephyr(machine)))
    assert default_type(board).type is ProjectType.ZEPHYR
    monkeypatch.setenv("PATH", "")
    assert default_type(board).type is ProjectType.ZEPHYR  # none can be built: the board's first
    assert default_type(board).missing == ()


def test_the_default_of_chips_of_espressif_is_their_own_framework(machine: Path) -> None:
    """A board that the ESP-IDF supports has a project for it where no tool of a board is there."""
    supported = [
        board for board in all_boards() if ProjectType.ESP_IDF in [s.type for s in board.projects]
    ]
    assert len(supported) >= 6
    assert {default_type(board).type for board in supported} == {ProjectType.ESP_IDF}


def test_create_project_says_what_it_passed_by(machine: Path, microtir: Command) -> None:
    """One line says which types were passed by and why; asked for, each is made."""
    made = microtir("micro", "create-project", "-o", machine / "a", "--board", "nrf52840dk",
                    "example:digits")  # fmt: skip
    assert (made.status, "cmake project for" in made.out) == (0, True)
    assert "skipped the project types zephyr, platformio: Zephyr is not on" in made.out
    asked = microtir("micro", "create-project", "-o", machine / "b", "--board", "nrf52840dk",
                     "--project-type", "zephyr", "example:digits")  # fmt: skip
    assert (asked.status, "zephyr project for" in asked.out) == (0, True)
    assert "skipped the project types" not in asked.out
    built = microtir("micro", "build", machine / "b")
    assert (built.status, "west init" in built.diagnostic) == (3, True)
