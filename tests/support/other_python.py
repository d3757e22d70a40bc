"""A second interpreter, and the packages that microtir needs for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def other_python(needs: str = "") -> str | None:
    """Return an interpreter of another version that imports what is needed, if one does.

    `make test-other` and `.ci/run` make one with all packages, in `build/other-python`.
    """
    own = sys.version_info[:2]
    names = [str(ROOT / "build" / "other-python" / "bin" / "python")]
    names += [f"python3.{minor}" for minor in (14, 13, 12, 11, 10)]
    names += map(str, sorted(Path.home().glob(".pyenv/versions/3.1*/bin/python3"), reverse=True))
    code = f"import sys; print(*sys.version_info[:2]); {needs and f'import {needs}'}"
    for program in filter(None, map(shutil.which, names)):
        done = subprocess.run([program, "-c", code], capture_output=True, text=True, check=False)
        if done.returncode == 0 and (3, 10) <= tuple(map(int, done.stdout.split())) != own:
            return program
    return None
