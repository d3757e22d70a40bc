"""The pages for those who begin, and for those who come from interpreters and libraries in C."""

from __future__ import annotations

from pathlib import Path

import pytest

from microtir import driver
from tests.support import shared_programs
from tests.support.command import INT8
from tests.support.pages import follow

pytestmark = pytest.mark.tools


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are followed in a folder of their own; what they compile alike is compiled once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(driver, "build", shared_programs.build)


def test_quick_start(tmp_path: Path) -> None:
    """Every command does what it says, and the application runs."""
    printed = follow("quick-start.md", tmp_path)
    assert "equal: 450 samples" in printed
    assert "bytes of RAM, score of class 0: " in printed
    assert (tmp_path / "report.html").is_file() and (tmp_path / "app").is_dir()


def test_from_tflite_micro(tmp_path: Path) -> None:
    """The array is read as the file that it was, and equals the interpreter."""
    data = INT8.read_bytes()
    array = ",\n".join(f"  0x{byte:02x}" for byte in data)
    text = f"unsigned char digits[] = {{\n{array}\n}};\nunsigned int digits_len = {len(data)};\n"
    (tmp_path / "model_data.cc").write_text(text, "utf-8")
    printed = follow("from-tflite-micro.md", tmp_path)
    assert "equal: 4 samples" in printed and "reference: tflite-micro" in printed
    assert "a workspace of " in printed


def test_from_cmsis_nn(tmp_path: Path) -> None:
    """The C equals what CMSIS-NN computes, too: the interpreter's reference kernels."""
    assert "reference: tflite-micro" in follow("from-cmsis-nn.md", tmp_path)
    assert (tmp_path / "net" / "net_weights.c").is_file()
