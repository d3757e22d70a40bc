"""The pages for those who begin, and for those who come from interpreters and libraries in C."""

from __future__ import annotations

from pathlib import Path

import pytest

from microtir import driver
from tests.support import shared_programs
from tests.support.command import INT8
from tests.support.pages import blocks, follow

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
    """The file that was an array comes back byte for byte, and equals the interpreter."""
    data = INT8.read_bytes()
    array = ",\n".join(f"  0x{byte:02x}" for byte in data)
    text = f"unsigned char digits[] = {{\n{array}\n}};\nunsigned int digits_len = {len(data)};\n"
    (tmp_path / "model_data.cc").write_text(text, "utf-8")
    printed = follow("from-tflite-micro.md", tmp_path)
    assert (tmp_path / "model.tflite").read_bytes() == INT8.read_bytes()
    assert "equal: 4 samples" in printed and "reference: tflite-micro" in printed
    assert "a workspace of " in printed


@pytest.mark.parametrize(
    "declared",
    [
        "unsigned char digits[] = {BYTES};",
        (
            "#ifdef __has_attribute\n#define HAVE(x) __has_attribute(x)\n#endif\n"
            "#if HAVE(aligned) || (defined(__GNUC__) && !defined(__clang__))\n"
            "#define DATA_ALIGN_ATTRIBUTE __attribute__((aligned(4)))\n#endif\n"
            "const unsigned char g_model[] DATA_ALIGN_ATTRIBUTE = {BYTES};\n"
            "const int g_model_len = 4;"
        ),
        "extern const uint8_t model[];\nalignas(16) const uint8_t model[4] = {BYTES};",
        '/* model[] = {1}; */\nconst uint8_t m[] __attribute__((section(".model"))) =\n{BYTES};',
    ],
)
def test_an_array_in_c_becomes_a_file(declared: str, tmp_path: Path) -> None:
    """In the forms in which examples of TFLite Micro and of vendors write it."""
    text = declared.replace("BYTES", "\n  0x1c, 0x00, // 16 bytes a line\n  0XfF, 70,\n")
    (tmp_path / "model_data.cc").write_text(text, "utf-8")
    exec(blocks("from-tflite-micro.md", "python")[0], {})
    assert (tmp_path / "model.tflite").read_bytes() == b"\x1c\x00\xff\x46"


def test_from_cmsis_nn(tmp_path: Path) -> None:
    """The C equals what CMSIS-NN computes, too: the interpreter's reference kernels."""
    assert "reference: tflite-micro" in follow("from-cmsis-nn.md", tmp_path)
    assert (tmp_path / "net" / "net_weights.c").is_file()
