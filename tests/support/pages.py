"""Pages of the documentation as a newcomer follows them: every block is run, in order."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from microtir.cli import main
from tests.support.network import python_path

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


# In a shell the command is this checkout's, installed or not.
_COMMAND = f'microtir() {{ {shlex.quote(sys.executable)} -m microtir "$@"; }}'


def follow(page: str, folder: Path) -> str:
    """Run the python, sh and console blocks of a page in `folder`, the current one.

    `examples` of the repository is there, too. Blocks of python share their variables; lines of
    console blocks that begin with `$ microtir` run in this process.

    Returns:
        What they printed.
    """
    (folder / "examples").symlink_to(ROOT / "examples")
    scope: dict[str, object] = {}
    output = io.StringIO()
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for language, block in _BLOCK.findall(text):
        if language == "python":
            with contextlib.redirect_stdout(output):
                exec(compile(block, page, "exec", dont_inherit=True), scope)
        elif language == "sh":
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", f"{_COMMAND}\n{block}"],
                env={**os.environ, "PYTHONPATH": python_path(ROOT / "generator")},
                cwd=folder, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
            output.write(done.stdout)
        elif language == "console":
            for line in re.findall(r"^\$ microtir (.*)$", block, re.MULTILINE):
                with contextlib.redirect_stdout(output):
                    assert main(shlex.split(line)) == 0, line
    # Functions of a page hold its variables and the other way round: a file that it left open would
    # be closed, with a warning, in the middle of some other test.
    scope.clear()
    return output.getvalue()


def shown(page: str) -> list[str]:
    """Return the lines that a page says are printed: its text blocks."""
    return [line for block in blocks(page, "text") for line in block.splitlines()]


def blocks(page: str, language: str) -> list[str]:
    """Return the blocks of a page in a language."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [block for written, block in _BLOCK.findall(text) if written == language]
