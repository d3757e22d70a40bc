"""Arduino libraries: built by arduino-builder and run under simavr, checked for other boards."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import microtir
from microtir.boards import Label, ProjectType, all_boards, load_board
from microtir.boards.errors import ProjectError
from microtir.boards.toolchain import symbols
from microtir.config import Feature, Runtime
from microtir.projects import ProjectOptions, generate
from tests.support.board_projects import digits, digits_samples
from tests.support.pages import follow, shown

MEGA = "c -mcpu=atmega2560"
BOARDS = {
    board.name: support
    for board in all_boards()
    for support in board.projects
    if support.type is ProjectType.ARDUINO
}


def _warnings(folder: Path) -> list[str]:
    """Return what compilers say about files of ours; Arduino's own files warn."""
    done = subprocess.run(["make"], cwd=folder, check=True, capture_output=True, text=True)
    lines = (done.stdout + done.stderr).splitlines()
    return [line for line in lines if "warning:" in line and "/cores/" not in line]


@pytest.mark.parametrize("name", [n for n, s in BOARDS.items() if s.label is Label.EXECUTED])
def test_example_model(name: str, tmp_path: Path) -> None:
    """The sketch computes what tflite-micro does, and no file of the project warns."""
    board = load_board(name)
    options = ProjectOptions(samples={"digits": digits_samples(5)})
    project = generate(digits(str(board.target)), board, "arduino", tmp_path / "p", options=options)
    assert _warnings(project.folder) == []
    result = project.run(timeout=60)
    assert (result.status, result.output.count(" equal\n")) == (0, 5), result.output


def test_mega_and_uno_are_run() -> None:
    """The boards whose sketches simavr can run are."""
    assert BOARDS["atmega2560"].label is Label.EXECUTED
    assert BOARDS["uno"].label is Label.EXECUTED


def test_models_share_their_memory(tmp_path: Path) -> None:
    """Two models in one library take the workspace of one, and their weights stay in flash."""
    models = [digits(MEGA, "first"), digits(MEGA, "second")]
    project = generate(models, "atmega2560", "arduino", tmp_path / "p")
    project.build()
    values = [ln.split(" = ")[1] for ln in project.run().output.splitlines() if " = " in ln]
    assert len(values) == 2
    assert values[0] == values[1]
    found = symbols(project.board.toolchain, project.program_path)
    sizes = {symbol.name.split(".")[0]: symbol.size for symbol in found}  # LTO adds .NUMBER
    model = models[0].module.model
    assert model is not None
    (pool,) = model.memory.pools
    # A type that holds the workspaces of both is a multiple of its alignment.
    assert sizes["workspace"] == -(-pool.size // pool.alignment) * pool.alignment
    assert sum(s.size for s in found if s.kind in "dDbB") < model.memory.workspace_size + 1024


def test_c_runtime(tmp_path: Path) -> None:
    """Models that use the C runtime find it in the library, once for all of them."""
    runtime = Runtime("crt", {"system-lib": True})
    artifacts = [
        microtir.build(
            microtir.frontend.from_tflite(
                microtir.support.resources.example("digits/digits_int8.tflite")
            ),
            microtir.CompilationConfig(targets=MEGA, module_name=name, runtime=runtime),
        )
        for name in ("first", "second")
    ]
    project = generate(artifacts, "atmega2560", "arduino", tmp_path / "p")
    assert (project.folder / "src/microtir/runtime.h").is_file()
    names = [path.name for path in project.folder.rglob("*.c")]
    assert names.count("registry.c") == 1
    assert not [name for name in names if name.endswith("system_lib.c")]
    project.build()
    assert project.run().output.count(" = ") == 2


@pytest.mark.parametrize("name", BOARDS)
def test_library_of_every_board(name: str, tmp_path: Path) -> None:
    """The library obeys Arduino's rules for libraries: fields, folders, one sketch."""
    target = load_board(name).target
    artifact = digits(str(target) if target.has(Feature.AVR_PROGMEM) else "c")
    project = generate(artifact, name, "arduino", tmp_path / "p")
    lines = (project.folder / "library.properties").read_text().splitlines()
    fields = dict(line.split("=", 1) for line in lines)
    assert list(fields) == [
        *("name", "version", "author", "maintainer", "sentence", "paragraph", "category"),
        *("url", "architectures", "includes"),
    ]
    assert all(fields.values()) and fields["url"].startswith("https://")
    fqbn = (BOARDS[name].board or "").split(":")
    assert len(fqbn) in (3, 4)
    assert fields["architectures"] == fqbn[1]
    assert fields["name"] == "digits_models"
    assert (project.folder / "src" / fields["includes"]).is_file()
    assert [path.name for path in project.folder.rglob("*.ino")] == ["run.ino"]
    sketch = (project.folder / "examples/run/run.ino").read_text()
    assert f"#include <{fields['includes']}>" in sketch
    assert (BOARDS[name].board or "") in (project.folder / "README.md").read_text()


def test_build_error_is_the_compilers(tmp_path: Path) -> None:
    """A sketch that does not compile shows the compiler's message and the folder."""
    project = generate([], "uno", "arduino", tmp_path / "p")
    sketch = project.folder / "examples/run/run.ino"
    sketch.write_text(sketch.read_text().replace("platform_init();", "nothing();"))
    with pytest.raises(microtir.MicrotirError, match=r"nothing. was not declared") as caught:
        project.build()
    assert str(project.folder) in str(caught.value)


def test_flash_needs_a_port(tmp_path: Path) -> None:
    """A board that is written through a serial port says so, before any tool is started."""
    project = generate([], "atmega2560", "arduino", tmp_path / "p")
    program = project.folder / str(project.program)
    program.parent.mkdir(parents=True)
    program.write_bytes(b"")
    with pytest.raises(ProjectError, match="through a serial port"):
        project.flash()


def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that docs/projects/arduino.md tells a newcomer to do works as it says."""
    monkeypatch.chdir(tmp_path)
    output = follow("projects/arduino.md", tmp_path)
    assert output.count(" equal\n") == 3
    for line in shown("projects/arduino.md"):
        assert line in output
