"""Finds the C compilers of this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from microtir.errors import ToolError
from microtir.support import processes

CANDIDATES = ("gcc", "clang", "cc")
_TIMEOUT = 600.0  # seconds: a compiler that takes longer hangs
_SHOWN_LINES = 30


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C compiler; `version` is the first line of what it says about itself."""

    path: str
    version: str


def find_compiler(name: str | None = None) -> Compiler:
    """Return a compiler by name or path; without a name that of the variable CC, or a usual one.

    Raises:
        ToolError: there is none; says which package to install.
    """
    wanted = (name,) if name else (*filter(None, (os.environ.get("CC"),)), *CANDIDATES)
    for candidate in wanted:
        path = shutil.which(candidate)
        if path is not None:
            return _identified(path)
    raise ToolError(
        f"no C compiler '{name}'" if name else "no C compiler on this machine",
        where="host",
        legal=f"the name or path of a program. microtir looked for {', '.join(wanted)}",
        fix="install a C compiler, for example the package 'gcc' (Debian, Fedora) or "
        "'build-essential' (Ubuntu). `microtir compile` needs no C compiler",
    )


def run_compiler(compiler: Compiler, arguments: Sequence[str], folder: Path) -> str:
    """Run the compiler in a folder and return what it printed.

    Raises:
        ToolError: it failed; shows what it said.
    """
    try:
        done = processes.run([compiler.path, *arguments], cwd=folder, timeout=_TIMEOUT)
    except OSError as error:
        raise ToolError(f"the C compiler cannot be run: {error}", where=compiler.path) from None
    if done.returncode != 0:
        _check_headers(compiler)
        messages = "\n".join((done.stderr or done.stdout).splitlines()[:_SHOWN_LINES])
        raise ToolError(
            f"the C compiler ended with status {done.returncode}:\n{messages}",
            where=f"{compiler.path} {' '.join(arguments)}",
        )
    return done.stdout


def _check_headers(compiler: Compiler) -> None:
    """Refuse a compiler that finds no C library: a package of its own in most distributions."""
    command = [compiler.path, "-x", "c", "-fsyntax-only", "-include", "stdint.h", os.devnull]
    done = processes.run(command, timeout=_TIMEOUT)
    if done.returncode != 0:
        raise ToolError(
            "the C compiler finds no <stdint.h>: the headers of the C library are not installed",
            where=compiler.path,
            fix="install the package 'libc6-dev' (Debian, Ubuntu), 'glibc-devel' (Fedora) or "
            "'musl-dev' (Alpine). `microtir compile` does not need them",
        )


@lru_cache(maxsize=16)
def _identified(path: str) -> Compiler:
    command = [path, "--version"]
    output, problem = processes.answer(command, timeout=60.0)
    if problem:
        raise ToolError(
            f"the C compiler does not print its version: {problem}",
            where=path,
            fix=f"find out why `{' '.join(command)}` fails",
        )
    return Compiler(path, output.splitlines()[0] if output else "unknown version")
