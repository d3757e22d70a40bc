"""ESP-IDF projects: manifests checked, and CMake files run with stand-ins for the ESP-IDF."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from pykwalify.core import Core
from pykwalify.errors import SchemaError

from microtir.boards import Label, ProjectType, all_boards
from microtir.boards.errors import MissingToolError
from microtir.projects import ProjectOptions, generate
from tests.support.board_projects import digits, digits_samples
from tests.support.frameworks import ESP_IDF_PROJECT
from tests.support.pages import follow

BOARDS = {
    board.name: support
    for board in all_boards()
    for support in board.projects
    if support.type is ProjectType.ESP_IDF
}
COMPONENT = "digits_other_models"
SCHEMA = Path(__file__).with_name("idf_component_schema.yml")


def test_application(tmp_path: Path) -> None:
    """The project's own CMake files make an application, which computes what tflite-micro does."""
    options = ProjectOptions(samples={"digits": digits_samples(3)}, definitions=["PROBE=7"])
    models = [digits("c -mcpu=esp32"), digits("c -mcpu=esp32", "other")]
    project = generate(models, "esp32_devkitc", "esp-idf", tmp_path / "p", options=options)
    source = project.folder / f"components/{COMPONENT}/models/digits/digits.c"
    for file in (source, project.folder / "main" / "main.c"):
        file.write_text(f"#if PROBE != 7\n#error\n#endif\n{file.read_text()}")
    package = tmp_path / "idf" / "tools" / "cmake"
    package.mkdir(parents=True)
    (package / "project.cmake").write_text(ESP_IDF_PROJECT)
    environment = {"PATH": "/usr/bin:/bin", "IDF_PATH": str(tmp_path / "idf")}
    outputs = [
        subprocess.run(
            command, cwd=project.folder, env=environment, check=True, capture_output=True, text=True
        ).stdout
        for command in (
            ["cmake", "-B", "build"],
            ["cmake", "--build", "build"],
            [str(project.program_path)],
        )
    ]
    assert outputs[-1].count("digits sample") == 6
    assert outputs[-1].count(" equal\n") == 3
    assert "other sample 0 probabilities = " in outputs[-1]


@pytest.mark.parametrize("name", BOARDS)
def test_component_of_every_board(name: str, tmp_path: Path) -> None:
    """The component's manifest obeys its schema, and the settings choose the board's chip."""
    project = generate(digits("c"), name, "esp-idf", tmp_path / "p")
    file = project.folder / "components" / "digits_models" / "idf_component.yml"
    facts = Core(source_file=str(file), schema_files=[str(SCHEMA)]).validate()
    assert facts["description"].startswith("Runs digits")
    file.write_text(file.read_text() + "dependency: {}\n")
    with pytest.raises(SchemaError, match="dependency"):
        Core(source_file=str(file), schema_files=[str(SCHEMA)]).validate()
    lines = (project.folder / "sdkconfig.defaults").read_text().splitlines()
    assert f'CONFIG_IDF_TARGET="{BOARDS[name].board}"' in lines
    assert "CONFIG_ESP_MAIN_TASK_STACK_SIZE=4096" in lines


def test_labels() -> None:
    """No board claims more than was done: nothing was compiled for it."""
    assert BOARDS
    assert {support.label for support in BOARDS.values()} == {Label.CHECKED}


def test_missing_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the ESP-IDF, building and flashing say where the command comes from."""
    project = generate(digits("c"), "esp32_devkitc", "esp-idf", tmp_path / "p")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingToolError, match=r"idf\.py is not on this machine") as caught:
        project.build()
    assert caught.value.fix is not None
    assert "export.sh" in caught.value.fix
    project.program_path.parent.mkdir()
    project.program_path.write_bytes(b"")
    with pytest.raises(MissingToolError, match=r"idf\.py is not on this machine"):
        project.flash("/dev/ttyUSB0")


def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What docs/projects/esp-idf.md says about generating works; the rest needs the ESP-IDF."""
    monkeypatch.chdir(tmp_path)
    follow("projects/esp-idf.md", tmp_path)
    assert (tmp_path / "build/digits_project/components/digits_models/idf_component.yml").is_file()
