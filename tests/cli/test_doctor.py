"""What `microtir doctor` says of this machine, and of one that has nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from microtir.boards import all_boards
from tests.support.command import Command


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave no program on the PATH, no home and no framework."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for variable in ("ZEPHYR_BASE", "Zephyr_DIR", "CMAKE_PREFIX_PATH", "CMAKE_MODULE_PATH"):
        monkeypatch.delenv(variable, raising=False)


def facts(microtir: Command) -> dict[str, Any]:
    """What is known, by the names of boards."""
    found = json.loads(microtir("doctor", "--json").out)
    return {board["name"]: board for board in found["boards"]}


@pytest.mark.tools
def test_what_tests_run_is_ready(microtir: Command) -> None:
    """Emulated boards are built here and run, as the tests of this repository do."""
    boards = facts(microtir)
    assert list(boards) == [board.name for board in all_boards()]
    for name in ("host", "mps2_an386", "riscv32", "atmega2560"):
        assert boards[name]["builds"]["baremetal"]["ready"], name
        assert boards[name]["emulator"]["ready"], name
    assert "onnx" in json.loads(microtir("doctor", "--json").out)["packages"]


@pytest.mark.usefixtures("bare")
def test_without_tools_each_board_says_what_to_install(microtir: Command) -> None:
    """Nothing is ready, and every row has a command or a sentence that gets it."""
    for board in facts(microtir).values():
        rows = [*board["builds"].values(), board["emulator"], board["flash"]]
        missing = [row for row in rows if row is not None and not row["ready"]]
        assert missing and all(fact["fix"] for row in missing for fact in row["missing"])
    text = microtir("doctor").out
    assert "sudo apt-get install gcc-arm-none-eabi" in text
    assert "Nothing is missing" not in text


@pytest.mark.usefixtures("bare")
def test_a_board_that_cannot_be_built_is_a_no(microtir: Command) -> None:
    """With each project type, what it lacks, and how to get that."""
    result = microtir("doctor", "--board", "nrf52840dk")
    assert result.status == 1
    for text in ("zephyr", "west init", "cmake", "arm-none-eabi-gcc"):
        assert text in result.out


def test_a_wrong_board_gets_the_nearest_name(microtir: Command) -> None:
    """As everywhere."""
    result = microtir("doctor", "--board", "mps2_an368")
    assert result.status == 2 and "mps2_an386" in result.diagnostic


@pytest.mark.usefixtures("bare")
def test_a_missing_tool_points_to_the_doctor(microtir: Command, tmp_path: Path) -> None:
    """The error itself says what to install first."""
    project = str(tmp_path / "p")
    microtir("micro", "create-project", "-o", project, "--board", "mps2_an386", "example:digits")
    result = microtir("micro", "build", project)
    assert result.status == 3
    assert "apt-get install" in result.diagnostic and "microtir doctor" in result.diagnostic
