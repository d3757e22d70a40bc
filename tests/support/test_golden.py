"""The `golden` fixture."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.golden import Golden


def test_writes_then_accepts_the_same_text(tmp_path: Path) -> None:
    """What an update wrote is accepted by the next comparison, byte for byte."""
    Golden(tmp_path / "new", update=True).check("a.c", "int a;\n")
    Golden(tmp_path / "new", update=False).check("a.c", "int a;\n")
    assert (tmp_path / "new" / "a.c").read_bytes() == b"int a;\n"


def test_difference_shows_a_diff(tmp_path: Path) -> None:
    """A difference fails with a diff of the lines and the command that updates."""
    (tmp_path / "a.c").write_text("int a;\nint b;\n")
    with pytest.raises(pytest.fail.Exception, match=r"(?s)make golden.*-int b;.*\+int c;"):
        Golden(tmp_path, update=False).check("a.c", "int a;\nint c;\n")


def test_line_ends_count(tmp_path: Path) -> None:
    """A carriage return is a difference: generated files are the same bytes on every system."""
    (tmp_path / "a.c").write_bytes(b"int a;\r\n")
    with pytest.raises(pytest.fail.Exception, match="only line ends differ"):
        Golden(tmp_path, update=False).check("a.c", "int a;\n")


def test_missing_golden_fails(tmp_path: Path) -> None:
    """A golden file that is not there fails and says which command writes it."""
    with pytest.raises(pytest.fail.Exception, match=r"no golden file .*make golden"):
        Golden(tmp_path, update=False).check("a.c", "")


def test_folder_mirrors_the_tests(golden: Golden, pytestconfig: pytest.Config) -> None:
    """Files lie under tests/golden in a folder named after the folder of the test."""
    assert golden.folder == pytestconfig.rootpath / "tests" / "golden" / "support"
