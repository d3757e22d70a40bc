"""Zephyr applications: formats checked by Zephyr's own parsers, and built where Zephyr is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import kconfiglib
import pytest
from pykwalify.core import Core
from pykwalify.errors import SchemaError

import microtir
from microtir.artifact import Artifact
from microtir.boards import ProjectType, all_boards, load_board
from microtir.boards.errors import EmulatorError, MissingToolError
from microtir.projects import Project, ProjectOptions, generate
from tests.support.board_projects import digits, digits_samples
from tests.support.frameworks import ZEPHYR_KCONFIG, ZEPHYR_PACKAGE
from tests.support.pages import follow
from tests.support.small_models import mixed_graph, module_of

BOARDS = {
    board.name: support
    for board in all_boards()
    for support in board.projects
    if support.type is ProjectType.ZEPHYR
}
SCHEMA = Path(__file__).with_name("zephyr_module_schema.yml")


def _project(artifact: Artifact, folder: Path, board: str = "mps2_an385") -> Project:
    return generate(artifact, board, "zephyr", folder)


def _kconfig(project: Project, folder: Path, conf: str = "prj.conf") -> kconfiglib.Kconfig:
    """Zephyr's part and the module's, with the application's settings."""
    root = folder / "Kconfig"
    module = project.folder / "module" / "Kconfig"
    root.write_text(f'{ZEPHYR_KCONFIG}\nsource "{module}"\n')
    kconfig = kconfiglib.Kconfig(str(root), warn_to_stderr=False)
    kconfig.load_config(str(project.folder / conf))
    return kconfig


def test_kconfig_of_integers(tmp_path: Path) -> None:
    """The application's settings switch the models on, without a warning of the parser."""
    project = _project(digits("c"), tmp_path / "p")
    kconfig = _kconfig(project, tmp_path)
    assert kconfig.warnings == []
    assert kconfig.syms["DIGITS_MODELS"].str_value == "y"
    assert kconfig.syms["MAIN_STACK_SIZE"].str_value == "4096"
    assert kconfig.syms["REQUIRES_FULL_LIBC"].str_value == "n"
    assert kconfig.syms["FPU"].str_value == "n"
    assert _kconfig(project, tmp_path, "semihosting.conf").warnings == []


def test_kconfig_of_floats(tmp_path: Path) -> None:
    """A model that calls <math.h> asks for a C library that has it, and for the FPU."""
    artifact = microtir.build(
        module_of(mixed_graph()), microtir.CompilationConfig(targets="c", module_name="digits")
    )
    assert any("#include <math.h>" in source.text for source in artifact.sources)
    kconfig = _kconfig(_project(artifact, tmp_path / "p"), tmp_path)
    assert kconfig.warnings == []
    assert kconfig.syms["REQUIRES_FULL_LIBC"].str_value == "y"
    assert kconfig.syms["FPU"].str_value == "y"


def test_module_file(tmp_path: Path) -> None:
    """module.yml obeys its schema and names files that are there; a key too many is found."""
    project = _project(digits("c"), tmp_path / "p")
    module = project.folder / "module"
    file = module / "zephyr" / "module.yml"
    facts = Core(source_file=str(file), schema_files=[str(SCHEMA)]).validate()
    assert (module / facts["build"]["cmake"] / "CMakeLists.txt").is_file()
    assert (module / facts["build"]["kconfig"]).is_file()
    file.write_text(file.read_text() + "  cmakes: .\n")
    with pytest.raises(SchemaError, match="cmakes"):
        Core(source_file=str(file), schema_files=[str(SCHEMA)]).validate()


def _configured_board(project: Project, release: str, folder: Path, *arguments: str) -> str:
    """Return the board that CMake asks a release of Zephyr for; with arguments build the module."""
    major, minor = release.split(".")
    base = folder / release
    package = base / "share/zephyr-package/cmake"
    package.mkdir(parents=True)
    (package / "ZephyrConfig.cmake").write_text(ZEPHYR_PACKAGE)
    version = f"VERSION_MAJOR = {major}\nVERSION_MINOR = {minor}\nPATCHLEVEL = 0\n"
    (base / "VERSION").write_text(version + "VERSION_TWEAK = 0\nEXTRAVERSION =\n")
    build = base / "build"
    command = ["cmake", "-G", "Ninja", "-S", str(project.folder), "-B", str(build), *arguments]
    environment = {"PATH": "/usr/bin:/bin", "ZEPHYR_BASE": str(base)}
    _run(command, environment)
    if arguments:
        _run(["cmake", "--build", str(build), "--target", "digits_models"], environment)
        assert list(build.rglob("libdigits_models.a"))
    return (build / "board").read_text()


def _run(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_board_names_by_release(tmp_path: Path) -> None:
    """Both styles of names: 3.10 and 3.20 come after 3.7, which no floating point number says."""
    project = _project(digits("c"), tmp_path / "p")
    expected = {
        "3.5": "mps2_an385",
        "3.6": "mps2_an385",
        "3.7": "mps2/an385",
        "3.20": "mps2/an385",
        "4.1": "mps2/an385",
    }
    found = {release: _configured_board(project, release, tmp_path) for release in expected}
    assert found == expected
    assert _configured_board(project, "4.0", tmp_path, "-DBOARD=mine") == "mine"


@pytest.mark.parametrize("name", BOARDS)
def test_application_of_every_board(name: str, tmp_path: Path) -> None:
    """Both names of the board are in the application, and its settings are known to Kconfig."""
    support = BOARDS[name]
    project = _project(digits("c"), tmp_path / "p", name)
    text = (project.folder / "CMakeLists.txt").read_text()
    assert f"set(BOARD {support.qualified_board})" in text
    assert f"set(BOARD {support.board})" in text
    assert (
        f"west build -b {support.qualified_board} ." in (project.folder / "README.md").read_text()
    )
    assert _kconfig(project, tmp_path).warnings == []
    for line in text.splitlines():
        if line.strip().endswith(".c"):
            assert (project.folder / line.strip()).is_file()


def test_missing_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool of Zephyr's that is not there is named with its package; compilers are Zephyr's."""
    project = _project(digits("c"), tmp_path / "p")
    package = tmp_path / "share" / "zephyr-package" / "cmake"
    package.mkdir(parents=True)
    (package / "ZephyrConfig.cmake").touch()
    monkeypatch.setenv("ZEPHYR_BASE", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingToolError, match="cmake is not on this machine") as caught:
        project.build()
    assert caught.value.fix == "sudo apt-get install cmake"


def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What docs/projects/zephyr.md says about generating works; the rest needs Zephyr."""
    monkeypatch.chdir(tmp_path)
    follow("projects/zephyr.md", tmp_path)
    assert (tmp_path / "build/digits_zephyr/module/zephyr/module.yml").is_file()


LINES = "digits sample 0 probabilities = 1\ndigits sample 0 probabilities {}\n"
# A QEMU whose program prints and then, as Zephyr does, sleeps.
EMULATOR = """#!/bin/sh
printf '{}'
exec sleep 60
"""


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (LINES.format("equal") + "digits stack 512\n", 0),
        (LINES.format("differs at 3: 1 instead of 2") + "digits stack 512\n", 1),
        ("digits error: bad input\ndigits stack 0\n", 2),
    ],
)
def test_emulated_program_that_goes_on(
    text: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zephyr's main thread sleeps when all is printed: `micro run` waited for its time-out."""
    project = _built_for_stand_in(text, tmp_path, monkeypatch)
    result = project.run(timeout=30)
    assert (result.status, result.output) == (status, text)


def test_emulated_program_that_stops_half_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the last line the program has not ended: the time-out shows what it printed."""
    project = _built_for_stand_in(LINES.format("equal"), tmp_path, monkeypatch)
    with pytest.raises(EmulatorError, match=r"did not end in 1\.5 seconds(.|\n)*sample 0"):
        project.run(timeout=1.5)


def _built_for_stand_in(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Make a project as if built, with an emulator on the PATH that prints a text."""
    project = _project(digits("c"), folder / "p")
    project.program_path.parent.mkdir(parents=True)
    project.program_path.touch()
    emulator = folder / "bin" / "qemu-system-arm"
    emulator.parent.mkdir()
    emulator.write_text(EMULATOR.format(text.replace("\n", "\\n")))
    emulator.chmod(0o755)
    monkeypatch.setenv("PATH", f"{emulator.parent}:/usr/bin:/bin")
    return project


@pytest.mark.zephyr
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["mps2_an385", "mps3_an547"])
def test_built_and_run(name: str, tmp_path: Path) -> None:
    """With a real Zephyr the application is built, runs, and computes what tflite-micro does."""
    board = load_board(name)
    options = ProjectOptions(samples={"digits": digits_samples(3)})
    project = generate(digits(str(board.target)), board, "zephyr", tmp_path / "p", options=options)
    project.build(["-DEXTRA_CONF_FILE=semihosting.conf"])
    result = project.run(timeout=60)
    assert (result.status, result.output.count(" equal\n")) == (0, 3), result.output
