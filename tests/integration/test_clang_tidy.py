"""What clang-tidy, which many firmware projects run on all of their C, says of generated files."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig, Target

MODEL = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"
# Parameters of one type are what kernels have: no check can tell which of them belong together.
CHECKS = "-*,bugprone-*,clang-analyzer-*,-bugprone-easily-swappable-parameters"


@pytest.mark.parametrize("target", ["c", "c -mcpu=cortex-m4"])
def test_nothing_is_found(target: str, tmp_path: Path) -> None:
    """34 products in indices were reported as widened: none overflows, which files say now."""
    tool = shutil.which("clang-tidy")
    assert tool is not None, "make setup-dev installs it"
    config = CompilationConfig.from_target(Target(target)).with_(module_name="digits")
    folder = microtir.build(microtir.frontend.from_tflite(MODEL), config).export(tmp_path / "c")
    files = map(str, sorted(folder.glob("*.c")))
    done = subprocess.run(
        [tool, f"-checks={CHECKS}", "--warnings-as-errors=*", *files, "--", "-std=c99"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
