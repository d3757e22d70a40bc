"""Run the command line in this process, for tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from microtir import driver
from microtir.cli import main
from tests.support import shared_programs

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"
INT8 = DIGITS / "digits_int8.tflite"
FLOAT = DIGITS / "digits_float.tflite"
TEST_SET = DIGITS / "digits_test.npz"


@dataclass(frozen=True, slots=True)
class Result:
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def diagnostic(self) -> str:
        """Return the only diagnostic of a command that failed without a result."""
        assert self.out == "", self.out
        assert "Traceback" not in self.err
        assert self.err.startswith("error: ")
        assert self.err.count("error: ") == 1
        return self.err


class Command:
    """Runs `microtir` with arguments and keeps what it prints."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Result:
        self._capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        captured = self._capsys.readouterr()
        return Result(status, captured.out, captured.err)


@pytest.fixture
def microtir(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Return the command line, which compiles an example for a configuration once."""
    monkeypatch.setattr(driver, "build", shared_programs.build)
    return Command(capsys)
