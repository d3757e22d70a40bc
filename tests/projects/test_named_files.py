"""What the texts of a project name is there: files, and an example's table of models."""

from __future__ import annotations

from pathlib import Path

import pytest

from microtir.projects import generate
from tests.support.board_projects import digits
from tests.support.named_files import missing_files

# Others have these, or an #if that is not true here has the #include.
ELSEWHERE = {
    *("NAME.h", "west.yml", "run.ino", "digits_modelsConfigVersion.cmake"),
    *("ticks.h", "fault.h"),
}


@pytest.mark.parametrize(
    ("board", "kind"),
    [
        ("mps2_an386", "baremetal"), ("atmega2560", "baremetal"), ("riscv32", "baremetal"),
        ("host", "baremetal"), ("mps2_an521", "zephyr"), ("atmega2560", "arduino"),
        ("esp32c3_devkitm", "esp-idf"), ("pybadge", "platformio"), ("mps2_an386", "cmake"),
    ],
)  # fmt: skip
def test_files_that_are_named_are_there(board: str, kind: str, tmp_path: Path) -> None:
    """READMEs and comments name files of the project, or such as ELSEWHERE has."""
    project = generate(digits("c"), board, kind, tmp_path / "p")
    found = missing_files(project.folder, ELSEWHERE)
    assert [line for line in found if not line.startswith("board_data/")] == []
