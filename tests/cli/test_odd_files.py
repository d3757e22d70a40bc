"""Files and names that no tool writes: a diagnostic, never a traceback."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.command import INT8, Command

DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (("report", INT8, "--profile", "deep.json"), 3, "is not a profile: it is not JSON"),
        (
            ("compile", INT8, "-o", "out", "--tuning-records", "deep.json"),
            3,
            "records: it is not JSON",
        ),
        (("check", INT8, "--config", "deep.json"), 2, "is not JSON"),
        (("compile", INT8, "-o", "kept"), 3, "contains files that microtir did not write"),
        (("micro", "build", "kept"), 2, "is damaged"),
    ],
)
def test_json_that_is_nested_too_deeply(
    microtir: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[object, ...], status: int, text: str,
) -> None:  # fmt: skip
    """Every file of JSON that a user may give, or that lies where microtir looks for its own."""
    monkeypatch.chdir(tmp_path)
    Path("deep.json").write_text(DEEP)
    Path("kept").mkdir()
    for name in ("metadata.json", "project.json"):
        Path("kept", name).write_text(DEEP)
    result = microtir(*arguments)
    assert result.status == status
    assert text in result.diagnostic
    assert not Path("out").exists()


def test_a_name_that_is_no_text(microtir: Command, tmp_path: Path) -> None:
    """The bytes of a file's name need not be UTF-8: reports show them escaped."""
    model = tmp_path / os.fsdecode(b"m\xff\xe9.tflite")
    shutil.copy(INT8, model)
    page = tmp_path / "page.html"
    for arguments in (
        ("inspect", model), ("check", model), ("report", model, "--json"),
        ("report", model, "-o", page), ("compile", model, "-o", tmp_path / "out"),
    ):  # fmt: skip
        result = microtir(*arguments)
        assert (result.status, result.err) == (0, ""), arguments
    assert r"m\udcff\udce9.tflite" in page.read_text("utf-8")
