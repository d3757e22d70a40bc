"""Packages for CMake: built, installed and used, on this machine and for boards."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from microtir.boards import Label, ProjectType, all_boards, load_board
from microtir.boards.errors import ProjectError
from microtir.boards.toolchain import symbols
from microtir.projects import Project, ProjectOptions, generate
from tests.support.board_projects import digits, digits_samples
from tests.support.pages import follow, shown

STRICT = "-DCMAKE_C_FLAGS_RELEASE=-O1 -Wall -Wextra -Wconversion -Wshadow -Wundef -pedantic -Werror"
CONSUMER = """
cmake_minimum_required(VERSION 3.16)
project(consumer C)
{take}
add_executable(consumer main.c)
target_link_libraries(consumer PRIVATE digits_models::digits_models)
"""
MAIN = """
#include "digits/digits.h"
static DIGITS_WORKSPACE(workspace);
static int8_t image[DIGITS_IMAGE_ELEMENTS], probabilities[DIGITS_PROBABILITIES_ELEMENTS];
int main(void)
{
    struct digits_inputs inputs = {.image = image};
    struct digits_outputs outputs = {.probabilities = probabilities};
    return (int)digits_run(&inputs, &outputs, workspace);
}
"""


def _labelled(label: Label) -> list[str]:
    return [
        board.name
        for board in all_boards()
        for support in board.projects
        if (support.type, support.label) == (ProjectType.CMAKE, label)
    ]


def _one_per_compiler() -> list[object]:
    """Return the first of the boards that are built with the same compiler and flags.

    One of each compiler is usual: other flags are those of the projects that boards run.
    """
    found: dict[tuple[str, tuple[str, ...]], str] = {}
    compilers: dict[str, str] = {}
    for name in _labelled(Label.BUILT):
        toolchain = load_board(name).toolchain
        found.setdefault((toolchain.prefix, toolchain.flags), name)
        compilers.setdefault(toolchain.prefix, name)
    return [
        name if name in compilers.values() else pytest.param(name, marks=pytest.mark.soak_only)
        for name in found.values()
    ]


def _run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _consume(take: str, folder: Path, *arguments: str) -> None:
    """Build a program that takes the library in, and run it."""
    folder.mkdir(parents=True)
    (folder / "CMakeLists.txt").write_text(CONSUMER.format(take=take))
    (folder / "main.c").write_text(MAIN)
    _run(folder, "cmake", "-G", "Ninja", "-B", "build", *arguments)
    _run(folder, "cmake", "--build", "build")
    _run(folder, "build/consumer")


def _host_project(folder: Path) -> Project:
    return generate(digits("c"), "host", "cmake", folder)


def test_example_on_this_machine(tmp_path: Path) -> None:
    """The example computes what tflite-micro does, and no line of the project warns."""
    options = ProjectOptions(samples={"digits": digits_samples(5)})
    project = generate(digits("c"), "host", "cmake", tmp_path / "p", options=options)
    project.build([STRICT])
    result = project.run()
    assert (result.status, result.output.count(" equal\n")) == (0, 5), result.output


def test_tensors_in_the_workspace(tmp_path: Path) -> None:
    """A project keeps no memory for tensors that lie in the workspace, alone or beside others."""
    samples = {name: digits_samples(3) for name in ("digits", "other")}
    models = [digits("c", workspace_io=True), digits("c", "other")]
    for number in (1, 2):
        given = {name: samples[name] for name in ("digits", "other")[:number]}
        project = generate(
            models[:number], "host", "cmake", tmp_path / f"p{number}",
            options=ProjectOptions(samples=given),
        )  # fmt: skip
        text = next(project.folder.rglob("models.c")).read_text()
        assert ("} tensors;" in text) == (number == 2)
        project.build([STRICT])
        result = project.run()
        assert (result.status, result.output.count(" equal\n")) == (0, 3 * number), result.output


@pytest.mark.parametrize("name", _one_per_compiler())
def test_library_for_boards(name: str, tmp_path: Path) -> None:
    """The library is built with the board's compiler, and is no program."""
    board = load_board(name)
    project = generate(digits(str(board.target)), board, "cmake", tmp_path / "p")
    built = project.build([STRICT])
    assert built.name == "libdigits_models.a"
    assert "digits_run" in {s.name for s in symbols(board.toolchain, built) if s.kind == "T"}
    assert not (project.folder / "build/run_models").exists()
    # It told people to run the library in the board's emulator, which hangs.
    readme = (project.folder / "README.md").read_text()
    assert "qemu" not in readme and "build/here/run_models" in readme
    with pytest.raises(ProjectError, match="builds a library"):
        project.run()


def test_labels() -> None:
    """Boards whose compilers Debian has are built, the host is run."""
    assert {"mps2_an386", "nucleo_l4r5zi", "rpi_pico", "uno", "riscv32"} <= set(
        _labelled(Label.BUILT)
    )
    assert _labelled(Label.EXECUTED) == ["host"]


def test_add_subdirectory(tmp_path: Path) -> None:
    """A project that has the package as a folder links it, and builds neither example nor more."""
    project = _host_project(tmp_path / "p")
    _consume(f"add_subdirectory({project.folder} models)", tmp_path / "user")
    built = tmp_path / "user" / "build" / "models"
    assert (built / "libdigits_models.a").is_file()
    assert not (built / "run_models").exists()


def test_find_package(tmp_path: Path) -> None:
    """An installed package is found by version, and has its public headers only."""
    project = _host_project(tmp_path / "p")
    project.build()
    _run(project.folder, "cmake", "--install", "build", "--prefix", str(tmp_path / "installed"))
    (tmp_path / "installed").rename(tmp_path / "moved")
    prefix = f"-DCMAKE_PREFIX_PATH={tmp_path / 'moved'}"
    _consume("find_package(digits_models 1.0 REQUIRED)", tmp_path / "user", prefix)
    headers = [path.name for path in (tmp_path / "moved" / "include").rglob("*.h")]
    assert headers == ["digits.h"]
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    (wrong / "CMakeLists.txt").write_text(CONSUMER.format(take="find_package(digits_models 2.0)"))
    (wrong / "main.c").write_text(MAIN)
    command = ["cmake", "-B", "build", prefix]
    done = subprocess.run(command, cwd=wrong, capture_output=True, text=True, check=False)
    assert "version: 1.0.0" in done.stderr


def test_two_packages_in_one_program(tmp_path: Path) -> None:
    """Packages of different models live side by side: their names do not meet."""
    first = _host_project(tmp_path / "first")
    second = generate(digits("c", "other"), "host", "cmake", tmp_path / "second")
    take = f"add_subdirectory({first.folder} a)\nadd_subdirectory({second.folder} b)\n"
    _consume(take + "link_libraries(other_models::other_models)", tmp_path / "user")


def test_empty_package(tmp_path: Path) -> None:
    """A package without models is one, too."""
    project = generate([], "host", "cmake", tmp_path / "p")
    project.build()
    assert project.run().status == 0


def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that docs/projects/cmake.md tells a newcomer to do works as it says."""
    monkeypatch.chdir(tmp_path)
    output = follow("projects/cmake.md", tmp_path)
    assert output.count(" equal\n") == 3
    assert output.count("done, 10 values\n") == 2
    for line in shown("projects/cmake.md"):
        assert line in output
