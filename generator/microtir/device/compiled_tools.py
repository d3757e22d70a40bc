"""Compiles microtir's own tools in C when they are first used, and keeps them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from microtir.boards.errors import MissingToolError
from microtir.boards.toolchain import capture, install_text, require_program
from microtir.errors import OutputError
from microtir.support import processes
from microtir.support.cache_folder import cache_folder
from microtir.support.scratch import scratch_beside

_TIMEOUT = 600.0  # seconds: a compiler that takes longer hangs
_SOURCES = Path(__file__).resolve().parent / "tools"


@dataclass(frozen=True, slots=True)
class _Recipe:
    """The source of a tool, and how it is compiled."""

    source: str
    flags: tuple[str, ...]
    libraries: tuple[str, ...]
    package: str


class Tool(Enum):
    """A tool of microtir's own that is written in C, and how it is compiled."""

    AVR_RUNNER = _Recipe("avr_runner.c", (), ("-lsimavr", "-lelf"), "gcc libsimavr-dev libelf-dev")
    QEMU_PROFILER = _Recipe("qemu_profiler.c", ("-shared", "-fPIC"), (), "gcc libc6-dev")


def tool_path(tool: Tool) -> Path:
    """Return the compiled tool.

    It is kept in the user's cache folder ($XDG_CACHE_HOME/microtir), under a name that changes
    with its source, its flags and the compiler.

    Raises:
        MissingToolError: it cannot be compiled; names the Debian packages that it needs.
        OutputError: the cache folder cannot be written.
    """
    recipe = tool.value
    compiler = require_program("gcc", "gcc")
    source = _SOURCES / recipe.source
    digest = hashlib.sha256(source.read_bytes() + (_SOURCES / "regions.h").read_bytes())
    digest.update(repr(recipe).encode() + capture([compiler, "-dumpfullversion"]).encode())
    path = cache_folder() / f"{source.stem}-{digest.hexdigest()[:16]}"
    if not path.exists():
        try:
            _compile(compiler, recipe, source, path)
        except OSError as error:
            raise OutputError(
                f"this file cannot be written: {error.strerror}",
                where=str(path),
                fix="set XDG_CACHE_HOME to a folder that you may write to",
            ) from None
    return path


def _compile(compiler: str, recipe: _Recipe, source: Path, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Two processes may compile at once: each its own file, and the last rename wins.
    with scratch_beside(path) as scratch:
        new = scratch / "new"
        done = processes.run(
            [compiler, "-std=gnu99", "-O2", "-Wall", "-Wextra", *recipe.flags, str(source),
             *recipe.libraries, "-o", str(new)],
            timeout=_TIMEOUT,
        )  # fmt: skip
        if done.returncode != 0:
            raise MissingToolError(
                f"this file cannot be compiled:\n{done.stderr.rstrip()}",
                where=str(source),
                fix=install_text(recipe.package),
            )
        new.rename(path)
