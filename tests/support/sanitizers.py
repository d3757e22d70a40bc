"""Runs a module of the tests under sanitizers, in a process of its own.

The address sanitizer must be loaded before Python's allocator.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.network import python_path

FLAGS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
_ROOT = Path(__file__).parent.parent.parent


def run_sanitized(module: str, folder: Path) -> str:
    """Run `python -m module FOLDER`, which compiles with FLAGS; a finding is an error."""
    library = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True
    ).stdout.strip()
    environment = {
        **os.environ,
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONPATH": python_path(_ROOT / "generator", _ROOT),
    }
    result = subprocess.run(
        [sys.executable, "-m", module, str(folder)],
        env=environment, check=False, capture_output=True, text=True, cwd=_ROOT,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-4000:]
    return result.stdout.strip()
