"""Executes the blocks of a page in the current folder, with the Python that runs this module.

It needs no package but those that the page installs: `__main__` starts it in an environment of the
page's own.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PYTHON = ("py", "python")
_SHELL = ("sh", "shell")
_SHOWN_ONLY = ("c", "cpp")  # excerpts of an application, which sh blocks compile


@dataclass
class _Reader:
    """A reader of a page, with the variables of its Python and what was printed last."""

    page: str
    scope: dict[str, object] = field(default_factory=dict)
    printed: str = ""

    def follow(self, language: str, block: str) -> None:
        """Execute a block, or compare what was printed with a block of text.

        Raises:
            AssertionError: a command failed, or did not print what the page shows.
            ValueError: a language that has no meaning here.
        """
        if language in _PYTHON:
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(block, self.page, "exec", dont_inherit=True), self.scope)
            self.printed = output.getvalue()
        elif language in _SHELL:
            self.printed = _printed_by(block)
        elif language == "console":
            for command, shown in sessions(block):
                self.printed = _printed_by(command)
                check_shown(shown, self.printed)
        elif language == "text":
            check_shown(block, self.printed)
        elif language not in _SHOWN_ONLY:
            raise ValueError(f"{self.page} has a block of '{language}'")


def blocks(text: str) -> list[tuple[str, str]]:
    """Return the language and the content of each block of a page, in order."""
    return _BLOCK.findall(text)


def sessions(block: str) -> list[tuple[str, str]]:
    """Return the commands of a console block, each with the lines that it is shown to print."""
    return re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)


def check_shown(shown: str, printed: str) -> None:
    """Check that the lines that a page shows were printed, in that order.

    A line that ends in "..." is the beginning of a printed one.

    Raises:
        AssertionError: one was not; it names the line and has all that was printed.
    """
    rest = iter(printed.splitlines())
    for line in shown.splitlines():
        beginning = line.removesuffix("...")
        if not any(
            out == line or (beginning != line and out.startswith(beginning)) for out in rest
        ):
            raise AssertionError(f"the page shows:\n{line}\nprinted was:\n{printed}")


def _printed_by(script: str) -> str:
    """Run a script of bash, with the programs of this environment first, and return its output."""
    binaries = str(Path(sys.executable).parent)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env={**os.environ, "PATH": os.pathsep.join([binaries, os.environ.get("PATH", "")])},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise AssertionError(f"status {done.returncode} of:\n{script}\n{done.stdout}")
    return done.stdout


def main() -> int:
    """Follow the page whose path is the only argument, and name each block on stderr."""
    path = Path(sys.argv[1])
    reader = _Reader(path.name)
    for number, (language, block) in enumerate(blocks(path.read_text("utf-8")), 1):
        sys.stderr.write(f"{path.name}, block {number}: {language}\n")
        reader.follow(language, block)
    return 0


if __name__ == "__main__":
    sys.exit(main())
