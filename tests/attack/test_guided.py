"""What coverage guides needs atheris, which `make fuzz` installs into an environment of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.attack import guided


def test_without_atheris(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command says what installs it, instead of finding nothing."""
    monkeypatch.setitem(sys.modules, "atheris", None)
    assert guided.main(["--minutes", "0.1"]) == 2
    assert "make fuzz" in capsys.readouterr().err


def test_a_child_that_fails_is_a_problem(tmp_path: Path) -> None:
    """Where the child ends without the count of its runs, nothing was tried."""
    trial = guided.guided("no such kind", 1, "-runs=1", tmp_path)
    assert trial.tried == 0
    assert trial.problem
